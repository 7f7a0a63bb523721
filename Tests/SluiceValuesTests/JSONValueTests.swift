import SluiceValues
import Testing

@Suite struct `A JSON value` {
    @Test func `gives its content as the type that it has, and as no other`() {
        let values: [JSON] = [.null, true, 7, 1.5, "text", [1, 2], ["a": 1]]
        #expect(values.map { $0.bool } == [nil, true, nil, nil, nil, nil, nil])
        #expect(values.map { $0.int } == [nil, nil, 7, nil, nil, nil, nil])
        #expect(values.map { $0.string } == [nil, nil, nil, nil, "text", nil, nil])
        #expect(values.map { $0.array } == [nil, nil, nil, nil, nil, [1, 2], nil])
        #expect(values.map { $0.members?.map(\.key) } == [nil, nil, nil, nil, nil, nil, ["a"]])
        #expect(values.last?["a"] == 1 && values.last?["b"] == nil && values[5]["a"] == nil)
    }

    @Test func `equals a value of the same content, whatever the places in the text`() throws {
        let (one, other) = (try JSON.located(Array(#"{"a": 1}"#.utf8)), try JSON.located(Array("\n\n  { \"a\" : 1 }".utf8)))
        #expect(one == other && Set([one, other]).count == 1)
        #expect(Set([one, ["a": 2], ["b": 1], [1]]).count == 4)
        #expect(one.members?.first?.line == 1 && other.members?.first?.line == 3)
    }

    @Test func `in a text with an error tells line, column and what is wrong`() {
        let error = #expect(throws: JSONError.self) { try JSON.located(Array("{\n  \"é\" 1}".utf8)) }
        #expect(error?.description == "line 2, column 7: expected ':' after the key \"é\", found '1'")
        #expect(error?.line == 2 && error?.column == 7)
    }
}

/// Names that decide about permissions compare by bytes: equal letters of other bytes are other names.
@Suite struct `A set of names` {
    private static let composed = "\u{E9}"
    private static let decomposed = "e\u{301}"

    @Test func `contains the bytes of a name, not its letters`() {
        #expect(Self.composed == Self.decomposed && !Self.composed.hasSameBytes(as: Self.decomposed))
        let names: Set<String> = [Self.composed, "plain"]
        #expect(names.contains(bytesOf: Self.composed) && names.contains(bytesOf: "plain"))
        #expect(!names.contains(bytesOf: Self.decomposed) && !names.contains(bytesOf: "other"))
    }
}
