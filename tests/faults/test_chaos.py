"""Nothing is lost, phantom, early, out of order or misreported, and nothing stands still, whatever fails meanwhile.

One short round of the chaos programme in every run; tests/faults/chaos/run makes as many as there is time for.
"""

from chaos.round import run_round


def test_a_round_of_chaos(kafka, http_receiver, tmp_path):
    counts, faults = run_round(kafka, http_receiver, tmp_path, seed=1, seconds=15)
    print(f"\n{dict(counts)}\n{faults}")
