"""Secrets are in no log, no answer of the HTTP API and no column of a row, although whoever is called repeats them."""

import json

from support.servers.http_receiver import Answer

LIMIT_S = 60


def test_a_hook_that_repeats_the_request(stage):
    requests = []

    def repeat(request):
        requests.append(request)
        return Answer(400, body=f"{request.method} {request.path}\r\n{json.dumps(request.headers)}".encode())

    stage.receiver.on("/hooks/urlsekret9", repeat)
    stage.http("h", url=f"{stage.receiver.url}/hooks/urlsekret9/{{task_key}}?key=querysekret9", max_attempts=1,
               authorization="Bearer tok.sekret19", secret_headers={"X-Api-Key": "k\u00e4y\"sekret9"}, history="1h")
    daemon = stage.start()
    message_id = stage.insert("h", kept=True)[0]
    row = stage.wait_row(message_id, LIMIT_S, state="dead")
    said = row["last_error"]
    mac = requests[0].headers["duebox-callback"].rsplit(".", 1)[1]
    assert "HTTP 400 from 127.0.0.1" in said and "POST /***/***/?key=***" in said, said
    assert "Bearer ***" in said, said
    everything = said + json.dumps(daemon.lines()) + daemon.run("task", "show", message_id).stdout
    assert "sekret" not in everything and mac not in everything, everything
