"""Nothing is lost, phantom, early, out of order or misreported, and nothing stands still, whatever fails meanwhile.

One round of the chaos programme: each fault once in every run, for an hour with DUEBOX_TEST_LONG=1, or for
DUEBOX_TEST_CHAOS_S seconds. tests/faults/chaos/run makes rounds whose counters add up.
"""

from chaos.round import run_round

from support.scale import scaled


def test_a_round_of_chaos(kafka, http_receiver, tmp_path):
    seconds = scaled("DUEBOX_TEST_CHAOS_S", 15, 3600)
    counts, faults = run_round(kafka, http_receiver, tmp_path, seed=1, seconds=seconds)
    print(f"\n{dict(counts)}\n{faults}")
