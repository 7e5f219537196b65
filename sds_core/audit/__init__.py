"""Whether a mirror has all messages: compared with a store or with another mirror."""
