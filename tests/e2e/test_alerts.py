"""Alerts of a real Prometheus and Alertmanager on simulated traffic."""

from __future__ import annotations


def test_try(incident):
    p=incident.prometheus
    dur=f"{int(incident.ended_s-incident.begun_s)+20}s"
    for l,v in p.query(f"count_over_time(ALERTS[{dur}])"): print(v,l)
    print(p.query(f"max_over_time(sds_monitor_event_time_lag_seconds[{dur}])"), incident.ended_s-incident.begun_s)
    print(p.query(f"avg_over_time(sds_monitor_event_time_lag_seconds[{dur}])"), incident.ended_s-incident.begun_s)
    print(p.query(f"sds_monitor_batch_duration_seconds_count"))
    print(p.query(f"max_over_time(scrape_duration_seconds[{dur}])"))
    print(p.query(f"min_over_time(up[{dur}])"))
    for a in incident.webhook.told: print(a["status"],a["labels"],a["startsAt"],a["annotations"])
    import time; time.sleep(3)
    for a in incident.webhook.resolved: print(a["status"],a["labels"])

def test_try2(blind_tap):
    incident=blind_tap
    p=incident.prometheus
    dur=f"{int(incident.ended_s-incident.begun_s)+20}s"
    for l,v in p.query(f"count_over_time(ALERTS[{dur}])"): print(v,l)
    print(p.query(f"max_over_time(sds_monitor_event_time_lag_seconds[{dur}])"), incident.ended_s-incident.begun_s)
    for a in incident.webhook.told: print(a["status"],a["labels"],a["startsAt"],a["annotations"])
