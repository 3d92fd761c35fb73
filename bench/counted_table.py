"""A table in memory that answers reads as DynamoDB does, and counts requests, rows and read units.

It holds a hundred thousand rows, for which an emulator would take too long. Rules of DynamoDB: a page of a query has at
most 1 MB, a read unit is 4 KB, and a read that need not be consistent costs half. It knows only the conditions that
Berth's reads have.
"""

from __future__ import annotations

import json
import re
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import ClientError
from botocore.parsers import create_parser
from botocore.session import Session

from bench.item_sizes import item_size, write_units

_PAGE_BYTES = 1024 * 1024
_UNIT_BYTES = 4096
_INDEX = ("ListingKey", "ListingSort")
_TABLE = ("pk", "sk")
_CONDITION = re.compile(r"(?P<hash>\w+) = (?P<is>:\w+)(?: AND (?P<rest>.+))?")
_PREFIX = re.compile(r"begins_with\(\w+, (:\w+)\)")
_CHANGE = re.compile(r"(?P<action>ADD|DELETE) (?P<name>\w+) (?P<value>:\w+)")
_EQUALITIES = re.compile(r"\w+ = :\w+(?: AND \w+ = :\w+)*")
_ABSENT_OR_OTHER = re.compile(r"attribute_not_exists\(pk\) OR (?P<name>\w+) <> (?P<value>:\w+)")
_BELOW = re.compile(r"\w+ < (:\w+)")
_ABOVE = re.compile(r"\w+ > (:\w+)")

Row = Mapping[str, Any]


@dataclass
class Reads:
    """The reads of the table since they were last taken."""

    requests: int = 0
    rows: int = 0
    units: float = 0.0


@dataclass
class _Partition:
    """Rows by sort key, with their sizes."""

    rows: dict[str, Row] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    order: list[str] | None = None

    def put(self, sort: str, row: Row) -> None:
        self.rows[sort], self.sizes[sort], self.order = row, item_size(row), None

    @property
    def sorted(self) -> list[str]:
        if self.order is None:
            self.order = sorted(self.rows)
        return self.order


class CountedTable:
    """The part of DynamoDB's client that the measured requests use."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, str], _Partition] = defaultdict(_Partition)
        self._reads = Reads()

    def plant(self, row: Row) -> None:
        for keys in (_TABLE, _INDEX):
            if all(name in row for name in keys):
                self._partitions[keys[0], row[keys[0]]["S"]].put(row[keys[1]]["S"], row)

    def take_reads(self) -> Reads:
        """The reads since this was last called."""
        reads, self._reads = self._reads, Reads()
        return reads

    def get_item(self, **request: Any) -> dict[str, Any]:
        pk, sk = (request["Key"][name]["S"] for name in _TABLE)
        partition = self._partitions["pk", pk]
        row = partition.rows.get(sk)
        self._count(int(row is not None), partition.sizes.get(sk, 0), consistent=request.get("ConsistentRead", False))
        return {"Item": row} if row else {}

    def put_item(self, **request: Any) -> dict[str, Any]:
        """A row that replaces another one, if the attributes of that are equal to those of the condition.

        It counts as one request, and as its write units.
        """
        pk, sk = (request["Item"][name]["S"] for name in _TABLE)
        before = self._partitions["pk", pk].rows.get(sk, {})
        if not _holds(request.get("ConditionExpression", ""), before, request.get("ExpressionAttributeValues", {})):
            raise ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "PutItem")
        self.plant(request["Item"])
        self._reads.requests += 1
        self._reads.units += write_units(request["Item"])
        return {}

    def update_item(self, **request: Any) -> dict[str, Any]:
        """An addition to a number or a set, or a deletion from a set. It counts as one request and one unit."""
        pk, sk = (request["Key"][name]["S"] for name in _TABLE)
        change = _CHANGE.fullmatch(request["UpdateExpression"])
        if change is None:
            raise ValueError(f"The table does not know the update {request['UpdateExpression']}.")
        row, name = self._partitions["pk", pk].rows.get(sk, request["Key"]), change["name"]
        self.plant({**row, name: _changed(row.get(name), change["action"], _value_of(request, change["value"]))})
        self._count(1, _UNIT_BYTES, consistent=True)
        return {"Attributes": self._partitions["pk", pk].rows[sk]}

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        """Rows and changes together. It counts as one request, and as twice the units."""
        before = replace(self._reads)
        try:
            for write in request["TransactItems"]:
                for kind, given in write.items():
                    {"Put": self.put_item, "Update": self.update_item}[kind](**given)
        except ClientError:
            codes = [{"Code": "ConditionalCheckFailed"}]
            cancelled = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": codes}
            raise ClientError(cancelled, "TransactWriteItems") from None  # type: ignore[arg-type]
        self._reads.requests = before.requests + 1
        self._reads.units += self._reads.units - before.units
        return {}

    def query(self, **query: Any) -> dict[str, Any]:
        sort_name = _INDEX[1] if "IndexName" in query else _TABLE[1]
        partition, sorts = self._selected(query)
        if "ExclusiveStartKey" in query:
            after = query["ExclusiveStartKey"][sort_name]["S"]
            if query.get("ScanIndexForward", True):
                sorts = sorts[bisect_right(sorts, after) :]
            else:
                sorts = [each for each in sorts if each < after]
        read, size = 0, 0
        for sort in sorts[: query.get("Limit")]:
            if size + partition.sizes[sort] > _PAGE_BYTES:
                break
            read, size = read + 1, size + partition.sizes[sort]
        self._count(read, size, consistent=query.get("ConsistentRead", False))
        rows = [partition.rows[sort] for sort in sorts[:read]]
        page: dict[str, Any] = {"Count": read, "ScannedCount": read}
        if query.get("Select") != "COUNT":
            page["Items"] = _projected(rows, query.get("ProjectionExpression"))
        if read < len(sorts):
            page["LastEvaluatedKey"] = {name: rows[-1][name] for name in (*_TABLE, *_INDEX) if name in rows[-1]}
        return page

    def get_paginator(self, _operation: str) -> CountedTable:
        return self

    def paginate(self, **query: Any) -> Iterator[dict[str, Any]]:
        while True:
            page = self.query(**query)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _selected(self, query: Mapping[str, Any]) -> tuple[_Partition, list[str]]:
        condition = _CONDITION.fullmatch(query["KeyConditionExpression"])
        if condition is None:
            raise ValueError(f"The table does not know the condition {query['KeyConditionExpression']}.")
        values = query["ExpressionAttributeValues"]
        partition = self._partitions[condition["hash"], values[condition["is"]]["S"]]
        sorts = partition.sorted
        if rest := condition["rest"]:
            if prefix := _PREFIX.fullmatch(rest):
                begin = values[prefix[1]]["S"]
                sorts = sorts[bisect_left(sorts, begin) : bisect_right(sorts, begin + "\U0010ffff")]
            elif below := _BELOW.fullmatch(rest):
                sorts = sorts[: bisect_left(sorts, values[below[1]]["S"])]
            elif above := _ABOVE.fullmatch(rest):
                sorts = sorts[bisect_right(sorts, values[above[1]]["S"]) :]
            else:
                raise ValueError(f"The table does not know the condition {rest}.")
        return partition, sorts if query.get("ScanIndexForward", True) else sorts[::-1]

    def _count(self, rows: int, size: int, *, consistent: bool) -> None:
        self._reads.requests += 1
        self._reads.rows += rows
        self._reads.units += max(1, -(-size // _UNIT_BYTES)) * (1.0 if consistent else 0.5)


class ParsedTable(CountedTable):
    """A table whose answers botocore parses, as in a function: that takes most of the processor time of a long list."""

    def __init__(self) -> None:
        super().__init__()
        self.unmeasured_seconds = 0.0
        """The processor time that only this table takes, and not a function."""
        self._parser = create_parser("json")
        self._answer: Any = Session().get_service_model("dynamodb").operation_model("Query").output_shape

    def query(self, **query: Any) -> dict[str, Any]:
        began = time.process_time()
        body = json.dumps(super().query(**query)).encode()
        self.unmeasured_seconds += time.process_time() - began
        parsed: dict[str, Any] = self._parser.parse({"status_code": 200, "headers": {}, "body": body}, self._answer)
        return parsed


def _holds(condition: str, row: Row, values: Mapping[str, Any]) -> bool:
    """Whether a condition holds: attributes equal values, or the row is absent or differs in an attribute."""
    if other := _ABSENT_OR_OTHER.fullmatch(condition):
        return not row or row.get(other["name"]) != values[other["value"]]
    if condition and not _EQUALITIES.fullmatch(condition):
        raise ValueError(f"The table does not know the condition {condition}.")
    pairs = (each.split(" = ") for each in condition.split(" AND ") if each)
    return all(row.get(name) == values[value] for name, value in pairs)


def _value_of(request: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value: Mapping[str, Any] = request["ExpressionAttributeValues"][name]
    return value


def _changed(before: Mapping[str, Any] | None, action: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    if "N" in value:
        return {"N": str(int((before or {"N": "0"})["N"]) + int(value["N"]))}
    names = set((before or {"SS": []})["SS"])
    return {"SS": sorted(names | set(value["SS"]) if action == "ADD" else names - set(value["SS"]))}


def _projected(rows: Sequence[Row], attributes: str | None) -> list[Row]:
    """The rows with only these attributes. The others are read all the same, and counted."""
    if attributes is None:
        return list(rows)
    names = attributes.split(", ")
    return [{name: row[name] for name in names if name in row} for row in rows]
