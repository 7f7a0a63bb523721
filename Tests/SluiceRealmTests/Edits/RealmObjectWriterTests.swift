import RealmTestSupport
import SluiceCore
import SluiceRealm
import SluiceValues
import TestSupport
import Testing

@Suite struct `Objects for Realm clients` {
    private let writer = RealmObjectWriter(RandomObject.schema)
    private let key = RandomObject.key
    private func path(_ field: String, _ steps: RealmStep...) -> RealmPath { RealmPath(key, field, steps) }

    @Test func `an object enters as an erasure, a creation and its values`() throws {
        let spot = Value.dictionary(["a": .int(5), "tags": .list([.string("t")])])
        let values: [String: Value] = [
            "title": .string("t"), "count": .null, "owner": .int(7), "tags": .list([.string("x"), .string("y")]),
            "scores": .list([.int(3)]),
            "extra": .dictionary(["b": .null, "a": .double(1)]), "stops": .list([]), "byName": .dictionary(["k": spot]),
            "any": .dictionary(["l": .list([.int(1), .link(type: "Person", key: .int(2))])]),
        ]
        #expect(
            try writer.enter(key, values) == [
                .eraseObject(key), .createObject(key), .update(path("title"), .value(.string("t"))),
                .update(path("owner"), .value(.link(type: "Person", key: .int(7)))),
                .arrayInsert(path("tags"), at: 0, .value(.string("x")), priorSize: 0),
                .arrayInsert(path("tags"), at: 1, .value(.string("y")), priorSize: 1), .setInsert(path("scores"), .value(.int(3))),
                .update(path("extra", .key("a")), .value(.double(1))), .update(path("extra", .key("b")), .value(.null)),
                .update(path("byName", .key("k")), .container(.object)), .update(path("byName", .key("k"), .key("a")), .value(.int(5))),
                .arrayInsert(path("byName", .key("k"), .key("tags")), at: 0, .value(.string("t")), priorSize: 0),
                .update(path("any"), .container(.dictionary)), .update(path("any", .key("l")), .container(.list)),
                .arrayInsert(path("any", .key("l")), at: 0, .value(.int(1)), priorSize: 0),
                .arrayInsert(path("any", .key("l")), at: 1, .value(.link(type: "Person", key: .int(2))), priorSize: 1),
            ])
    }

    @Test func `an object leaves by an erasure alone`() {
        #expect(writer.leave(key) == [.eraseObject(key)])
    }

    @Test func `an addition that explains the change is sent as one`() throws {
        func update(_ old: Value, _ new: Value, by amount: Int64) throws -> [RealmInstruction] {
            try writer.update(key, from: ["count": old], to: ["count": new], counters: ["count": amount])
        }
        #expect(try update(.int(5), .int(7), by: 2) == [.addInteger(path("count"), 2)])
        #expect(try update(.int(.max), .int(.min), by: 1) == [.addInteger(path("count"), 1)])
        #expect(try update(.int(5), .int(8), by: 2) == [.update(path("count"), .value(.int(8)))])
        #expect(try update(.null, .int(2), by: 2) == [.update(path("count"), .value(.int(2)))])
        #expect(try update(.int(5), .int(5), by: 0).isEmpty)
    }

    @Test func `a list changes element by element`() throws {
        func tags(_ texts: String...) -> [String: Value] { ["tags": .list(texts.map { .string($0) })] }
        #expect(
            try writer.update(key, from: tags("a", "b", "c"), to: tags("a", "x", "c"))
                == [.arrayUpdate(path("tags"), at: 1, .value(.string("x")), priorSize: 3)])
        #expect(
            try writer.update(key, from: tags("a", "b", "c", "d"), to: tags("b", "d", "e")) == [
                .arrayErase(path("tags"), at: 0, priorSize: 4), .arrayErase(path("tags"), at: 1, priorSize: 3),
                .arrayInsert(path("tags"), at: 2, .value(.string("e")), priorSize: 2),
            ])
        #expect(
            try writer.update(key, from: tags("a"), to: tags("b", "a"))
                == [.arrayInsert(path("tags"), at: 0, .value(.string("b")), priorSize: 1)])
    }

    @Test func `an element that has moved alone is moved`() throws {
        func moves(_ old: String, _ new: String) throws -> [RealmInstruction] {
            func tags(_ text: String) -> [String: Value] { ["tags": .list(text.map { .string(String($0)) })] }
            return try writer.update(key, from: tags(old), to: tags(new))
        }
        #expect(try moves("abcde", "acdbe") == [.arrayMove(path("tags"), from: 1, to: 3, priorSize: 5)])
        #expect(try moves("abcde", "adbce") == [.arrayMove(path("tags"), from: 3, to: 1, priorSize: 5)])
        #expect(try moves("ab", "ba") == [.arrayMove(path("tags"), from: 0, to: 1, priorSize: 2)])
    }

    @Test func `sets, dictionaries and embedded objects change inside`() throws {
        let old: [String: Value] = [
            "scores": .list([.int(1), .int(2)]), "extra": .dictionary(["a": .double(1), "b": .double(2)]),
            "byName": .dictionary(["k": .dictionary(["a": .int(1), "tags": .list([])])]),
        ]
        let new: [String: Value] = [
            "scores": .list([.int(2), .int(3)]), "extra": .dictionary(["b": .double(3), "c": .null]),
            "byName": .dictionary(["k": .dictionary(["a": .int(2), "tags": .list([])])]),
        ]
        #expect(
            try writer.update(key, from: old, to: new) == [
                .setErase(path("scores"), .value(.int(1))), .setInsert(path("scores"), .value(.int(3))),
                .update(path("extra", .key("a")), .erased), .update(path("extra", .key("b")), .value(.double(3))),
                .update(path("extra", .key("c")), .value(.null)), .update(path("byName", .key("k"), .key("a")), .value(.int(2))),
            ])
    }

    @Test func `a repair empties a list and writes it again`() throws {
        #expect(
            try writer.repair(key, "tags", .list([.string("a")])) == [
                .clear(path("tags"), .list), .arrayInsert(path("tags"), at: 0, .value(.string("a")), priorSize: 0),
            ])
        #expect(throws: SluiceError.self) { try writer.repair(key, "title", .string("a")) }
    }

    @Test func `a value of another shape is an error`() {
        for wrong in [["title": Value.list([])], ["tags": .string("a")], ["place": .list([])], ["extra": .list([])]] {
            let error = #expect(throws: SluiceError.self) { try writer.enter(key, wrong) }
            #expect(error?.code == .internalError)
        }
    }

    // MARK: Properties

    @Test(arguments: seeds(20)) func `a client that applies an entering object holds its values`(seed: UInt64) throws {
        var random = RandomObject(seed: seed)
        for _ in 0..<rounds(50, soak: 1_000) {
            let values = random.values()
            // The client holds another object of the key.
            var model = RealmModel(RandomObject.schema, [key: random.values()])
            let instructions = try writer.enter(key, values)
            try model.apply(instructions)
            #expect(model.objects[key] == values, "seed \(seed)")
            let bytes = try RealmChangesetWriter.bytes(of: instructions)
            #expect(try RealmChangesetReader.instructions(of: bytes) == instructions, "seed \(seed)")
        }
    }

    @Test(arguments: seeds(20)) func `a client that applies an update holds the new values`(seed: UInt64) throws {
        var random = RandomObject(seed: seed)
        for _ in 0..<rounds(100, soak: 2_000) {
            let old = random.values()
            let new = random.random.chance(20) ? random.values() : random.changed(old)
            var model = RealmModel(RandomObject.schema, [key: old])
            try model.apply(try writer.update(key, from: old, to: new))
            #expect(model.objects[key] == new, "seed \(seed): \(old) to \(new)")
            #expect(try writer.update(key, from: new, to: new).isEmpty, "seed \(seed)")
        }
    }

    @Test(arguments: seeds(10)) func `a client that applies a change of a long list holds the new one`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let old = (0..<2_000).map { _ in Value.string("\(random.below(1_000_000))") }
        let other = (0..<2_100).map { _ in Value.string("\(random.below(1_000_000))") }
        var near = old
        near.remove(at: random.below(near.count))
        near.insert(.string("new"), at: random.below(near.count))
        for new in [other, near, Array(old.reversed())] {
            var model = RealmModel(RandomObject.schema, [key: ["tags": .list(old)]])
            let instructions = try writer.update(key, from: ["tags": .list(old)], to: ["tags": .list(new)])
            try model.apply(instructions)
            #expect(model.objects[key]?["tags"] == .list(new), "seed \(seed)")
        }
    }
}
