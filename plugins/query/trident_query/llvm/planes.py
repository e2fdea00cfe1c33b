"""Records -> byte planes: plane k holds byte k of as many records as a vector has bytes.

Where values of 1, 2, 4 or 8 bytes lie one after the other, whole vectors are loaded; otherwise each value is
loaded in parts of 8 bytes. No load reaches outside a value. The planes then come of log2 stages of shuffles
that every vector unit has (SSE2's unpack, NEON's zip): 32 for 8-byte values and 32 records. Shuffles whose
result is not used are never made into code.
"""

from __future__ import annotations

from trident_query.llvm.code import Code


class Planes:
    """The planes of one block of `host.width` records, of `width` bytes each.

    `contiguous`: one after the other, from %from; else `%stride` bytes apart. Loads are written into `code`.
    `order()` is the shuffle that puts a mask into the order of the records.
    """

    def __init__(self, code: Code, width: int, *, contiguous: bool) -> None:
        self.code, self.width = code, width
        whole = contiguous and width in (1, 2, 4, 8)
        self.part = width if whole else 8  # bytes of a record that one vector holds
        self._whole, self._contiguous = whole, contiguous
        self._parts: dict[int, list[str]] = {}

    def plane(self, index: int) -> str:
        """The vector of byte `index` of each record."""
        if self._whole:
            return self._transposed(0)[index]
        last = self.width - 8
        if self.width < 8:
            return self._transposed(0)[index]
        start = min(index // 8 * 8, last)  # the last part overlaps the one before it
        return self._transposed(start)[index - start]

    def record(self, vector: int, lane: int, slot: int) -> int:
        """Which record is in a slot of a 16-byte lane of a loaded vector."""
        lanes, group = self.code.host.width // 16, 16 // self.part
        return (vector * lanes + lane) * group + slot

    def order(self) -> list[int]:
        """For each record, its place in a plane."""
        lanes, group = self.code.host.width // 16, 16 // self.part
        places = [0] * self.code.host.width
        for lane in range(lanes):
            for vector in range(self.part):
                for slot in range(group):
                    places[self.record(vector, lane, slot)] = 16 * lane + group * vector + slot
        return places

    def in_order(self, mask: str) -> str:
        places = self.order()
        if places == sorted(places):
            return mask
        return self._shuffle(mask, mask, places, "i8")

    # --- loads ----------------------------------------------------------------------------------------------

    def _transposed(self, start: int) -> list[str]:
        if start not in self._parts:
            loaded = [self._load(vector, start) for vector in range(self.part)]
            self._parts[start] = self._transpose(loaded)
        return self._parts[start]

    def _load(self, vector: int, start: int) -> str:
        code, width = self.code, self.code.host.width
        if self._whole:
            at = code.value(f"getelementptr i8, ptr %from, i64 {vector * width}")
            return code.value(f"load {code.vector}, ptr {at}, align 1")
        count = width // 8
        words = f"<{count} x i64>"
        made = "poison"
        for lane in range(width // 16):
            for slot in range(2):
                value = self._load_value(self.record(vector, lane, slot), start)
                made = code.value(f"insertelement {words} {made}, i64 {value}, i64 {2 * lane + slot}")
        return code.value(f"bitcast {words} {made} to {code.vector}")

    def _load_value(self, record: int, start: int) -> str:
        """Up to 8 bytes of a record as an i64: one load, or two that overlap, or meet, within the record."""
        code, size = self.code, min(self.width, 8)
        if self._contiguous:
            at = code.value(f"getelementptr i8, ptr %from, i64 {record * self.width + start}")
        else:
            step = code.value(f"mul i64 %step, {record}")
            at = code.value(f"getelementptr i8, ptr %from, i64 {step}")
            at = code.value(f"getelementptr i8, ptr {at}, i64 {start}")
        most = 1 << (size.bit_length() - 1)
        low = self._integer(at, most)
        if most == size:
            return low
        rest = 1 << ((size - most) - 1).bit_length()  # bytes of a second load, that ends with the record
        end = code.value(f"getelementptr i8, ptr {at}, i64 {size - rest}")
        high = self._integer(end, rest)
        moved = code.value(f"shl i64 {high}, {8 * (size - rest)}")
        return code.value(f"or i64 {low}, {moved}")

    def _integer(self, at: str, size: int) -> str:
        loaded = self.code.value(f"load i{8 * size}, ptr {at}, align 1")
        return loaded if size == 8 else self.code.value(f"zext i{8 * size} {loaded} to i64")

    # --- shuffles -------------------------------------------------------------------------------------------

    def _transpose(self, loaded: list[str]) -> list[str]:
        """Vectors of whole records -> planes: bytes of a lane are grouped, then groups change vectors."""
        group = 16 // self.part
        lanes = self.code.host.width // 16
        grouping = [
            16 * lane + slot * self.part + byte
            for lane in range(lanes)
            for byte in range(self.part)
            for slot in range(group)
        ]
        vectors = loaded
        if self.part > 1:
            vectors = [self._shuffle(vector, vector, grouping, "i8") for vector in loaded]
        distance = 1
        while distance < self.part:
            vectors = self._stage(vectors, distance, group * distance)
            distance *= 2
        return vectors

    def _stage(self, vectors: list[str], distance: int, size: int) -> list[str]:
        """Vectors v and v + distance exchange halves: elements of `size` bytes are interleaved.

        The lower half of a pair goes to the even of its new places, the upper to the odd.
        """
        lanes, per_lane = self.code.host.width // 16, 16 // size
        total = lanes * per_lane
        picks: list[list[int]] = [[], []]
        for lane in range(lanes):
            for half in range(2):
                for element in range(per_lane // 2):
                    at = lane * per_lane + half * (per_lane // 2) + element
                    picks[half] += [at, total + at]
        made = [""] * len(vectors)
        for base in range(0, len(vectors), 2 * distance):
            for offset in range(distance):
                low, high = vectors[base + offset], vectors[base + offset + distance]
                for half in range(2):
                    made[base + 2 * offset + half] = self._shuffle(low, high, picks[half], f"i{8 * size}")
        return made

    def _shuffle(self, left: str, right: str, picks: list[int], element: str) -> str:
        code = self.code
        count = len(picks)
        kind = f"<{count} x {element}>"
        indices = ", ".join(f"i32 {pick}" for pick in picks)
        if element != "i8":
            left = code.value(f"bitcast {code.vector} {left} to {kind}")
            right = code.value(f"bitcast {code.vector} {right} to {kind}")
        made = code.value(f"shufflevector {kind} {left}, {kind} {right}, <{count} x i32> <{indices}>")
        return made if element == "i8" else code.value(f"bitcast {kind} {made} to {code.vector}")
