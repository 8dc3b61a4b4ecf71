# SPDX-License-Identifier: Apache-2.0
"""The dashboards of contrib/grafana: their queries, with Grafana's variables replaced as Grafana does."""

import json
import os
import re

DIRECTORY = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "contrib", "grafana")


def load(name):
    with open(os.path.join(DIRECTORY, name), encoding="utf-8") as file:
        return json.load(file)


def panels_of(dashboard):
    """All that show something, those in collapsed rows included."""
    for panel in dashboard["panels"]:
        yield from panel.get("panels", []) if panel["type"] == "row" else [panel]


def promql_value(texts):
    """What Grafana makes of a variable that may have several values: a regular expression within a string."""
    escaped = [text if text == ".*" else re.sub(r"[$^*{}\[\]+?.()|]", r"\\\\\g<0>", text.replace("\\", "\\" * 4)) for text in texts]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def replaced(text, values):
    """$name and ${name}; a name without a value is a mistake of the dashboard."""
    return re.sub(r"\$\{(\w+)\}|\$(\w+)", lambda found: values[found[1] or found[2]], text)


def variables_of(dashboard):
    return {variable["name"]: variable for variable in dashboard["templating"]["list"]}
