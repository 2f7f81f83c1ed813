#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/openapi.yaml against the server: admin_openapi.py <admin_endpoints> <openapi.yaml>.

Every endpoint of the routing table is described, nothing else is, with the same rights and parameters; the problem
codes are the same; a real answer of /api/v1/stats has exactly the members that are described; a body is accepted if and
only if its schema holds.
"""
import json
import re
import subprocess
import sys

import yaml

SECURITY = {"open": [], "read": [{}, {"token": []}], "records": None, "operate": None, "callback": []}


def server_says(program):
    lines = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    words = [line.split(" ", 1) for line in lines]
    endpoints = {tuple(rest.split()[:2]): rest.split()[2] for kind, rest in words if kind == "endpoint"}
    problems = {rest.split()[0] for kind, rest in words if kind == "problem"}
    stats = [json.loads(rest) for kind, rest in words if kind == "stats"]
    bodies = [rest.split(" ", 2) for kind, rest in words if kind == "body"]
    return endpoints, problems, stats[0], [(path, json.loads(body), said) for said, path, body in bodies]


def resolve(document, node):
    while isinstance(node, dict) and "$ref" in node:
        target = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def without_value(node, place="openapi.yaml"):
    """The places of keys that have none: a comma that is not quoted makes one of the text behind it."""
    if node is None:
        yield place
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from without_value(value, f"{place}: {key}")


def all_refs(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node
        for value in node.values():
            yield from all_refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from all_refs(value)


def check_operation(document, path, operation, role):
    wrong = []
    if operation.get("security") != SECURITY[role]:
        wrong.append(f"security is {operation.get('security')}, the server's role is {role}")
    named = {resolve(document, p)["name"] for p in operation.get("parameters", [])}
    if named != set(re.findall(r"{(\w+)}", path)):
        wrong.append(f"parameters are {sorted(named)}")
    for word in ("operationId", "summary", "tags"):
        if word not in operation:
            wrong.append(f"no {word}")
    if "200" not in operation.get("responses", {}) or "default" not in operation.get("responses", {}):
        wrong.append("no answer 200 or default")
    return [f"{path}: {text}" for text in wrong]


def check_members(document, schema, value, where):
    """Objects must have the members that are described, no others; the types must fit."""
    schema = resolve(document, schema)
    if value is None:
        return [] if schema.get("nullable") else [f"{where} is null"]
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    if not isinstance(value, kinds[schema["type"]]):
        return [f"{where} is no {schema['type']}"]
    if schema["type"] == "array":
        return [w for i, item in enumerate(value) for w in check_members(document, schema["items"], item, f"{where}[{i}]")]
    if schema["type"] != "object":
        return []
    if "properties" not in schema:
        return [w for key, item in value.items()
                for w in check_members(document, schema["additionalProperties"], item, f"{where}.{key}")]
    wrong = [f"{where}.{key} is described, not sent" for key in schema["properties"].keys() - value.keys()]
    wrong += [f"{where}.{key} is sent, not described" for key in value.keys() - schema["properties"].keys()]
    for key in value.keys() & schema["properties"].keys():
        wrong += check_members(document, schema["properties"][key], value[key], f"{where}.{key}")
    return wrong


def holds(document, schema, value):
    """Whether a value is as the schema says; of JSON Schema what is used for requests here."""
    schema = resolve(document, schema)
    kinds = {"object": dict, "string": str, "integer": int, "number": (int, float)}
    if "type" in schema and (not isinstance(value, kinds[schema["type"]]) or isinstance(value, bool)):
        return False
    if isinstance(value, str):
        return (schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
                and value in schema.get("enum", [value]) and re.search(schema.get("pattern", ""), value) is not None)
    if not isinstance(value, dict):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    properties = schema.get("properties", {})
    return (value.keys() >= set(schema.get("required", []))
            and (schema.get("additionalProperties", True) or value.keys() <= properties.keys())
            and ("oneOf" not in schema or sum(holds(document, one, value) for one in schema["oneOf"]) == 1)
            and all(holds(document, properties[key], value[key]) for key in value.keys() & properties.keys()))


def check_bodies(document, bodies):
    wrong = []
    for path, body, said in bodies:
        request = resolve(document, document["paths"][path]["post"]["requestBody"])
        if holds(document, request["content"]["application/json"]["schema"], body) != (said == "accepted"):
            wrong.append(f"{path}: {json.dumps(body)} is {said}, and described otherwise")
    return wrong


def ids_not_strings(node, where=""):
    """Ids are strings, as the description says: JavaScript's numbers do not hold them."""
    wrong = []
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if key == "properties" and value.get("id", {}).get("type", "string") != "string":
            wrong.append(f"{where}: id is no string")
        wrong += ids_not_strings(value, f"{where}/{key}")
    return wrong


def check(document, endpoints, problems, stats, bodies):
    described = {(method.upper(), path): operation
                 for path, item in document["paths"].items() for method, operation in item.items()}
    wrong = [f"{key} is served, not described" for key in endpoints.keys() - described.keys()]
    wrong += [f"{key} is described, not served" for key in described.keys() - endpoints.keys()]
    for key in endpoints.keys() & described.keys():
        wrong += check_operation(document, key[1], described[key], endpoints[key])
    ids = [operation.get("operationId") for operation in described.values()]
    wrong += [f"operationId {name} is there twice" for name in ids if ids.count(name) > 1]
    codes = set(document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"])
    wrong += [f"problem code {code} is on one side only" for code in codes ^ problems]
    wrong += ids_not_strings(document)
    wrong += [f"{place} has no value" for place in without_value(document)]
    for ref in all_refs(document):
        try:
            resolve(document, ref)
        except KeyError:
            wrong.append(f"{ref['$ref']} leads nowhere")
    wrong += check_bodies(document, bodies)
    return wrong + check_members(document, {"$ref": "#/components/schemas/Stats"}, stats, "stats")


def self_test(document, endpoints, problems, stats, bodies):
    """The check must be able to fail."""
    some = next(iter(endpoints))
    assert check(document, endpoints | {("GET", "/new"): "open"}, problems, stats, bodies)
    assert check(document, {k: v for k, v in endpoints.items() if k != some}, problems, stats, bodies)
    assert check(document, endpoints | {("POST", "/api/v1/reload"): "open"}, problems, stats, bodies)
    assert check(document, endpoints, problems | {"new"}, stats, bodies)
    assert check(document, endpoints, problems, stats | {"new": 1}, bodies)
    assert check(document, endpoints, problems, {k: v for k, v in stats.items() if k != "shards"}, bodies)
    for path, body, said in bodies:
        assert check(document, endpoints, problems, stats, [(path, body, "refused" if said == "accepted" else "accepted")])


def main():
    endpoints, problems, stats, bodies = server_says(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        document = yaml.safe_load(file)
    wrong = check(document, endpoints, problems, stats, bodies)
    for line in sorted(wrong):
        print(line)
    if wrong:
        return 1
    self_test(document, endpoints, problems, stats, bodies)
    print(f"{len(endpoints)} endpoints, {len(problems)} problem codes and {len(bodies)} bodies are as described")
    return 0


if __name__ == "__main__":
    sys.exit(main())
