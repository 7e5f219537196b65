"""Compares a mirror with a store or another mirror: does it have all messages?"""
