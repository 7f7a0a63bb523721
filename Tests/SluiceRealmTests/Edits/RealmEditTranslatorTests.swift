import RealmTestSupport
import SluiceCore
import SluiceMerge
import SluiceRealm
import SluiceValues
import TestSupport
import Testing

@Suite struct `Uploads of Realm clients` {
    private static let key = RandomObject.key
    private func path(_ field: String, _ steps: RealmStep...) -> RealmPath { RealmPath(Self.key, field, steps) }

    private func changes(_ instructions: RealmInstruction..., version: UInt64 = 1) throws(SluiceError) -> [ObjectChange] {
        try RealmEditTranslator.changes(of: instructions, schema: RandomObject.schema, lists: UnknownLists(), version: version)
    }

    private func change(_ kind: ObjectChange.Kind, _ edits: Edit...) -> ObjectChange {
        ObjectChange(object: Self.key, kind: kind, edits: edits)
    }

    /// The first tag of version 1.
    private static let tag: UInt64 = 1 << 20

    // MARK: Instructions

    @Test func `an object's instructions become one change until its erasure`() throws {
        let other = ObjectKey(type: "Task", key: .int(2))
        let found = try changes(
            .createObject(Self.key), .update(path("title"), .value(.string("a"))), .createObject(other),
            .update(path("owner"), .value(.link(type: "Person", key: .int(7))), isDefault: true), .addInteger(path("count"), 2),
            .eraseObject(Self.key), .createObject(Self.key), .addInteger(RealmPath(other, "count"), 3))
        #expect(
            found == [
                ObjectChange(
                    object: Self.key, kind: .create, values: ["title": .string("a"), "owner": .int(7)], defaults: ["owner"],
                    counters: ["count": 2]),
                ObjectChange(object: other, kind: .create, counters: ["count": 3]), ObjectChange(object: Self.key, kind: .delete),
                ObjectChange(object: Self.key, kind: .create),
            ])
    }

    @Test func `a set voids earlier additions and defaults`() throws {
        let found = try changes(
            .update(path("count"), .value(.int(1)), isDefault: true), .addInteger(path("count"), 2),
            .update(path("count"), .value(.int(5))), .addInteger(path("count"), .max), .addInteger(path("count"), 1))
        #expect(found == [ObjectChange(object: Self.key, kind: .set, values: ["count": .int(5)], counters: ["count": .min])])
    }

    @Test func `an unknown list is read by the merge`() throws {
        let tag = Self.tag
        #expect(
            try changes(
                .arrayInsert(path("tags"), at: 2, .value(.string("x")), priorSize: 2),
                .arrayInsert(path("tags"), at: 0, .value(.string("y")), priorSize: 3),
                .arrayMove(path("tags"), from: 0, to: 2, priorSize: 4), .arrayMove(path("tags"), from: 3, to: 1, priorSize: 4),
                .arrayErase(path("tags"), at: 1, priorSize: 4), .arrayUpdate(path("tags"), at: 2, .value(.string("z")), priorSize: 3)
            ) == [
                change(
                    .set, Edit("tags", .insert(.string("x"), after: .seen(1), tag: tag), priorSize: 2),
                    Edit("tags", .insert(.string("y"), after: nil, tag: tag + 1), priorSize: 3),
                    Edit("tags", [.element(.seen(0))], .move(after: .seen(2), tag: tag + 2), priorSize: 4),
                    Edit("tags", [.element(.seen(3))], .move(after: .seen(0), tag: tag + 3), priorSize: 4),
                    Edit("tags", [.element(.seen(1))], .remove, priorSize: 4),
                    Edit("tags", [.element(.seen(2))], .set(.string("z")), priorSize: 3))
            ])
    }

    @Test func `the elements of a known list have their names`() throws {
        let (a, b) = (ElementRef.listed(0, ValueHash(.string("a"))), ElementRef.listed(1, ValueHash(.string("b"))))
        let x = ElementRef.own(Self.tag, index: 1, ValueHash(.string("x")))
        let found = try RealmEditTranslator.changes(
            of: [
                .arrayInsert(path("tags"), at: 1, .value(.string("x")), priorSize: 2), .arrayErase(path("tags"), at: 0, priorSize: 3),
                .arrayMove(path("tags"), from: 1, to: 0, priorSize: 2),
                .arrayUpdate(path("tags"), at: 1, .value(.string("y")), priorSize: 2),
            ], schema: RandomObject.schema, lists: KnownTags(elements: [a, b]), version: 1)
        #expect(
            found == [
                change(
                    .set, Edit("tags", .insert(.string("x"), after: a, tag: Self.tag)), Edit("tags", [.element(a)], .remove),
                    Edit("tags", [.element(b)], .move(after: nil, tag: Self.tag + 1)), Edit("tags", [.element(x)], .set(.string("y"))))
            ])
    }

    private struct KnownTags: RealmListSource {
        let elements: [ElementRef]
        var list = "tags"
        func elements(of object: ObjectKey, property: String, path: [EditStep]) -> [ElementRef]? {
            property == list && path.isEmpty ? elements : nil
        }
    }

    @Test func `a mixed value that becomes another container has no known elements`() throws {
        let source = KnownTags(elements: [.listed(0, ValueHash(.string("a")))], list: "any")
        let found = try RealmEditTranslator.changes(
            of: [
                .arrayInsert(path("any"), at: 1, .value(.int(1)), priorSize: 1), .update(path("any"), .container(.dictionary)),
                .update(path("any"), .container(.list)), .arrayInsert(path("any"), at: 0, .value(.int(2)), priorSize: 0),
            ], schema: RandomObject.schema, lists: source, version: 1)
        #expect(
            found == [
                change(
                    .set, Edit("any", .insert(.int(1), after: source.elements[0], tag: Self.tag)), Edit("any", .become(.dictionary)),
                    Edit("any", .become(.list)), Edit("any", .insert(.int(2), after: nil, tag: Self.tag + 1), priorSize: 0))
            ])
    }

    @Test func `a cleared list is known, and a created object's is not asked for`() throws {
        let source = KnownTags(elements: [.listed(0, ValueHash(.string("a")))])
        func edits(_ instructions: RealmInstruction...) throws -> [Edit] {
            try RealmEditTranslator.changes(of: instructions, schema: RandomObject.schema, lists: source, version: 1).last?.edits ?? []
        }
        let x = ElementRef.own(Self.tag, index: 0, ValueHash(.string("x")))
        #expect(
            try edits(
                .clear(path("tags"), .list), .arrayInsert(path("tags"), at: 0, .value(.string("x")), priorSize: 0),
                .arrayErase(path("tags"), at: 0, priorSize: 1))
                == [
                    Edit("tags", .clear(.list)), Edit("tags", .insert(.string("x"), after: nil, tag: Self.tag)),
                    Edit("tags", [.element(x)], .remove),
                ])
        #expect(
            try edits(.createObject(Self.key), .arrayInsert(path("tags"), at: 0, .value(.string("x")), priorSize: 0))
                == [Edit("tags", .insert(.string("x"), after: nil, tag: Self.tag), priorSize: 0)])
    }

    @Test func `embedded objects, sets, dictionaries and mixed values are edited by path`() throws {
        #expect(
            try changes(
                .update(path("place"), .value(.null)), .update(path("place"), .container(.object)),
                .update(path("place", .key("x")), .value(.double(1))), .setInsert(path("scores"), .value(.int(1))),
                .setErase(path("scores"), .value(.int(2))), .update(path("extra", .key("k")), .value(.null)),
                .update(path("extra", .key("l")), .erased), .clear(path("extra"), .none), .update(path("any"), .container(.list)),
                .addInteger(path("any", .index(0)), 4), .clear(path("scores"), .set)
            ) == [
                change(
                    .set, Edit("place", .set(.null)), Edit("place", .become(.object)), Edit("place", [.key("marks")], .become(.list)),
                    Edit("place", [.key("names")], .become(.dictionary)), Edit("place", [.key("x")], .set(.double(1))),
                    Edit("scores", .setInsert(.int(1))), Edit("scores", .setErase(.int(2))), Edit("extra", [.key("k")], .set(.null)),
                    Edit("extra", [.key("l")], .remove), Edit("extra", .clear(.dictionary)), Edit("any", .become(.list)),
                    Edit("any", [.element(.seen(0))], .add(4)), Edit("scores", .clear(.set)))
            ])
    }

    @Test func `tags follow from the client's version`() throws {
        func tags(_ version: UInt64) throws -> [Edit] {
            try changes(.arrayInsert(path("tags"), at: 0, .value(.string("x")), priorSize: 0), version: version)[0].edits
        }
        #expect(try tags(5) == tags(5))
        #expect(try tags(5) != tags(6))
    }

    // MARK: Faults

    @Test(
        arguments: [
            (.createObject(ObjectKey(type: "Tusk", key: .int(1))), .unknownType, "no class 'Tusk'. Did you mean 'Task'?"),
            (.createObject(ObjectKey(type: "Place", key: .int(1))), .unknownType, "are embedded"),
            (.eraseObject(ObjectKey(type: "Task", key: .string("1"))), .wrongValueType, "is int; the client has string"),
            (.createObject(ObjectKey(type: "Task", key: .null)), .wrongValueType, "is int; the client has null"),
            (.update(RealmPath(key, "titel"), .value(.null)), .unknownProperty, "no property 'titel'. Did you mean 'title'?"),
            (.update(RealmPath(key, "_id"), .value(.int(2))), .badChangeset, "writes the primary key"),
            (.update(RealmPath(key, "title"), .value(.int(2))), .wrongValueType, "a value of type int to 'title', which is string"),
            (.update(RealmPath(key, "title"), .value(.null)), .wrongValueType, "a value of type null to 'title'"),
            (.update(RealmPath(key, "owner"), .value(.link(type: "Task", key: .int(1)))), .wrongValueType, "a link to 'Task' to 'owner'"),
            (.update(RealmPath(key, "owner"), .value(.int(1))), .wrongValueType, "a value of type int to 'owner'"),
            (.update(RealmPath(key, "any"), .value(.link(type: "Nobody", key: .int(1)))), .wrongValueType, "a link to 'Nobody'"),
            (.update(RealmPath(key, "tags"), .value(.string("a"))), .wrongValueType, "to 'tags', which is list of string"),
            (.update(RealmPath(key, "title"), .container(.object)), .wrongValueType, "a place of 'title' a container"),
            (.update(RealmPath(key, "title", [.key("a")]), .value(.null)), .badChangeset, "goes to key 'a' of 'title'"),
            (.update(RealmPath(key, "place", [.key("y")]), .value(.null)), .unknownProperty, "Place has no property 'y'"),
            (.update(RealmPath(key, "place", [.key("x")]), .erased), .badChangeset, "removes a key of 'x'"),
            (.update(RealmPath(key, "place", [.key("x")]), .value(.int(1))), .wrongValueType, "to 'x', which is double"),
            (.addInteger(RealmPath(key, "title"), 1), .wrongValueType, "adds to 'title'"),
            (.clear(RealmPath(key, "tags"), .dictionary), .badChangeset, "empties 'tags' as a dictionary"),
            (.clear(RealmPath(key, "any"), .none), .badChangeset, "empties 'any'"),
            (.setInsert(RealmPath(key, "tags"), .value(.string("a"))), .badChangeset, "a set's member concerns 'tags'"),
            (.setInsert(RealmPath(key, "scores"), .value(.string("a"))), .wrongValueType, "to 'scores', which is set of int"),
            (
                .arrayInsert(RealmPath(key, "scores"), at: 0, .value(.int(1)), priorSize: 0), .badChangeset,
                "a list's element concerns 'scores'"
            ),
            (
                .arrayInsert(RealmPath(key, "tags"), at: 2, .value(.string("a")), priorSize: 1), .badChangeset,
                "element 2 of 'tags', a list of 1"
            ),
            (.arrayInsert(RealmPath(key, "tags"), at: 0, .value(.int(1)), priorSize: 0), .wrongValueType, "to 'tags'"),
            (.arrayInsert(RealmPath(key, "tags"), at: 0, .erased, priorSize: 0), .badChangeset, "inserts nothing into 'tags'"),
            (.arrayErase(RealmPath(key, "tags"), at: 0, priorSize: 0), .badChangeset, "element 0 of 'tags', a list of 0"),
            (.arrayUpdate(RealmPath(key, "tags"), at: 1, .value(.string("a")), priorSize: 1), .badChangeset, "element 1 of 'tags'"),
            (.arrayMove(RealmPath(key, "tags"), from: 0, to: 0, priorSize: 1), .badChangeset, "moves element 0 of 'tags' to 0"),
            (.arrayMove(RealmPath(key, "tags"), from: 0, to: 2, priorSize: 2), .badChangeset, "moves element 0 of 'tags' to 2"),
        ] as [(RealmInstruction, ErrorCode, String)])
    func `a contradiction is named`(instruction: RealmInstruction, code: ErrorCode, words: String) {
        let error = #expect(throws: SluiceError.self) { try changes(instruction) }
        #expect(error?.code == code)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test func `a known list of another size is a contradiction`() {
        let error = #expect(throws: SluiceError.self) {
            try RealmEditTranslator.changes(
                of: [.arrayErase(path("tags"), at: 0, priorSize: 3)], schema: RandomObject.schema, lists: KnownTags(elements: [.seen(0)]),
                version: 1)
        }
        #expect(error?.code == .badChangeset)
        #expect(error?.message.contains("a list of 3, but it has 1") == true)
    }

    // MARK: Properties

    /// A client's changesets of one object, merged as its only writer's.
    @Test(arguments: seeds(20)) func `merged changesets of one client give its own state`(seed: UInt64) throws {
        var random = RandomObject(seed: seed)
        for _ in 0..<rounds(20, soak: 400) {
            let writer = RealmObjectWriter(RandomObject.schema)
            var model = RealmModel(RandomObject.schema)
            var state = ObjectState()
            var instructions = try writer.enter(Self.key, random.values())
            for version in 1...4 as ClosedRange<UInt64> {
                try model.apply(instructions)
                try move(&model, &instructions, &random.random)
                let changes = try RealmEditTranslator.changes(
                    of: instructions, schema: RandomObject.schema, lists: UnknownLists(), version: version)
                let context = WriteContext(
                    stamp: WriteStamp(time: HybridTime(milliseconds: Int64(version)), client: ClientID(rawValue: 7)), base: .zero,
                    now: LSN(rawValue: version))
                for change in changes { try Merge.apply(change, by: context, to: &state, type: RandomObject.task) }
                let expected = try #require(model.objects[Self.key])
                for property in RandomObject.task.properties where property.name != "_id" {
                    let merged = complete(state.values?[property.name] ?? .null, property)
                    #expect(merged == expected[property.name], "seed \(seed), version \(version): \(property.name)")
                }
                instructions = try writer.update(Self.key, from: expected, to: random.changed(expected))
            }
        }
    }

    @Test(arguments: seeds(20)) func `any instructions are changes that merge, or a named error`(seed: UInt64) throws {
        let codes: Set<ErrorCode> = [.badChangeset, .unknownType, .unknownProperty, .wrongValueType]
        var random = RandomInstruction(seed: seed)
        random.names =
            ["Task", "Task", "Task", "Person", "Place"] + RandomObject.task.properties.map(\.name) + ["x", "marks", "spot", "a"]
        random.keys = [.int(1)]
        random.indices = [0, 0, 1, 2, 3]
        let known = KnownTags(elements: (0..<3).map { .listed($0, ValueHash(.int(0))) })
        var merged = 0
        for round in 0..<rounds(2_000, soak: 40_000) {
            var state = ObjectState()
            do {
                let instructions = (0..<3).map { _ in random.next() }
                // The source is asked only for lists of objects that the changeset does not create.
                let changes =
                    round.isMultiple(of: 2)
                    ? try RealmEditTranslator.changes(of: instructions, schema: RandomObject.schema, lists: known, version: .max)
                    : try RealmEditTranslator.changes(
                        of: [.createObject(Self.key)] + instructions, schema: RandomObject.schema, lists: UnknownLists(), version: 1)
                let context = WriteContext(
                    stamp: WriteStamp(time: .zero, client: ClientID(rawValue: 7)), base: .zero, now: LSN(rawValue: 1))
                for change in changes where change.object == Self.key {
                    try Merge.apply(change, by: context, to: &state, type: RandomObject.task)
                }
                merged += 1
            } catch {
                #expect(codes.contains(error.code), "seed \(seed): \(error)")
            }
        }
        #expect(merged > 0, "seed \(seed)")
    }

    /// Moves elements of the model's tags, as instructions at the end.
    private func move(_ model: inout RealmModel, _ instructions: inout [RealmInstruction], _ random: inout SplitMix64) throws {
        guard case .list(let tags)? = model.objects[Self.key]?["tags"], tags.count > 1 else { return }
        for _ in 0..<random.below(3) {
            let (from, to) = (random.below(tags.count), random.below(tags.count))
            if from == to { continue }
            let instruction = RealmInstruction.arrayMove(path("tags"), from: from, to: to, priorSize: tags.count)
            try model.apply(instruction)
            instructions.append(instruction)
        }
    }

    /// The value with the fields of embedded objects that no instruction has written.
    private func complete(_ value: Value, _ property: Property) -> Value {
        guard case .embedded(let name) = property.type, let type = RandomObject.schema[name] else { return value }
        var element = property
        element.collection = .none
        switch (property.collection, value) {
        case (.list, .list(let elements)): return .list(elements.map { complete($0, element) })
        case (.dictionary, .dictionary(let entries)): return .dictionary(entries.mapValues { complete($0, element) })
        case (.none, .dictionary(let fields)):
            var whole = RealmModel.empty(type)
            for field in type.properties {
                if let value = fields[field.name], !value.isNull { whole[field.name] = complete(value, field) }
            }
            return .dictionary(whole)
        default: return value
        }
    }
}
