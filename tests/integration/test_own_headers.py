"""What bears duebox's name comes from duebox, on Kafka, AMQP and HTTP alike."""

import json

from support.servers.http_receiver import Answer
from support.wait import wait_until

OWN = {"x-mine": "kept", "duebox-attempt": "77", "Duebox-Route": "forged", "DUEBOX-ID": "forged",
       "duebox-reply-to": "forged", "duebox-checkpoint": "forged", "duebox-anything": "forged"}


def test_an_application_does_not_speak_for_duebox(stage):
    """Its headers of such names are left out whatever the sink, and the task is sent."""
    stage.kafka("k", result="expected")
    stage.amqp("a", result="expected")
    stage.http("h")
    stage.configuration["results"] = [{"via": "bus", "topic": stage.topic(), "group": stage.name},
                                      {"via": "rabbit", "queue": stage.queue()}]
    seen = {}

    def answer(arrival):
        seen[arrival.headers["duebox-route"]] = arrival.headers
        return {"status": "done"}

    def receive(request):
        seen["h"] = {name.lower(): value for name, value in request.headers.items()}
        return Answer(200)

    stage.daemon()
    stage.consume_kafka("k", answer=answer)
    stage.consume_amqp("a", answer=answer)
    stage.receiver.on("/h", receive)
    stage.start()
    for route in "kah":
        stage.execute("INSERT INTO outbox (route, payload, headers) VALUES (%s, '{}', %s)", route, json.dumps(OWN))
    wait_until(lambda: set(seen) == set("kah"), 60, "a message on each way", detail=stage.living)
    for route, headers in seen.items():
        assert (headers["x-mine"], headers["duebox-attempt"], headers["duebox-route"]) == ("kept", "1", route)
        assert "forged" not in headers.values(), (route, headers)
