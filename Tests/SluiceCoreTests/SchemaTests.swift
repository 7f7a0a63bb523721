import SluiceCore
import TestSupport
import Testing

@Suite struct `A schema` {
    private static func schema(_ random: inout SplitMix64) -> Schema {
        let names = ["_id", "a", "b", "c", "name", "e\u{301}", "K", "\u{212A}"].shuffled(using: &random)
        let ids = (1...20).shuffled(using: &random)
        return Schema(
            (0..<3).map { number in
                let properties = (0..<(1 + random.below(6))).map { index in
                    // Names that are equal to Swift are two to the schema; a class has one of them.
                    Property(
                        id: UInt32(ids[index]), name: names[index], type: random.pick([.int, .string, .bool, .link(to: "T0")]),
                        collection: random.pick(CollectionKind.allCases), isOptional: random.chance(50))
                }
                return ObjectType(name: "T\(number)", properties: Self.distinct(properties), primaryKey: properties[0].name)
            })
    }

    private static func distinct(_ properties: [Property]) -> [Property] {
        var names: Set<String> = []
        return properties.filter { names.insert($0.name).inserted }
    }

    @Test(arguments: seeds(20)) func `finds classes and properties by name and by number`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let schema = Self.schema(&random)
        for (place, type) in schema.types.enumerated() {
            #expect(schema.index(of: type.name) == place && schema[type.name] == type, "seed \(seed)")
            #expect(type.primaryKey == 0, "seed \(seed)")
            for (index, property) in type.properties.enumerated() {
                #expect(type.index(of: property.name) == index && type[property.name] == property, "seed \(seed): \(property.name)")
                #expect(type.index(ofID: property.id) == index, "seed \(seed): \(property.id)")
            }
            for id in UInt32(0)...40 where !type.properties.contains(where: { $0.id == id }) {
                #expect(type.index(ofID: id) == nil, "seed \(seed): \(id)")
            }
            #expect(type.index(ofID: .max) == nil && type.index(of: String(repeating: "\u{301}", count: 10_000)) == nil)
        }
        #expect(schema.index(of: "T") == nil && schema["t0"] == nil && schema[""] == nil)
    }

    @Test func `has names of its own bytes alone`() {
        let type = ObjectType(name: "K", properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "é", type: .int)])
        #expect(type.index(of: "é") == 1 && type.index(of: "e\u{301}") == nil)
        let schema = Schema([type])
        #expect(schema.index(of: "K") == 0 && schema.index(of: "\u{212A}") == nil)
    }

    @Test(arguments: seeds(10)) func `keeps everything but the numbers when it is numbered anew`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let schema = Self.schema(&random)
        let numbered = schema.numbered { _, index in UInt32(index + 5) }
        for (one, other) in zip(schema.types, numbered.types) {
            #expect(one.name == other.name && one.kind == other.kind && one.primaryKey == other.primaryKey, "seed \(seed)")
            #expect(other.properties.map(\.id) == one.properties.indices.map { UInt32($0 + 5) }, "seed \(seed)")
            #expect(other.properties.map(\.name) == one.properties.map(\.name), "seed \(seed)")
        }
        #expect(numbered.numbered { type, index in schema[type.name]?.properties[index].id ?? 0 } == schema, "seed \(seed)")
    }

    @Test(arguments: [
        ("_id", "T", true), ("everywhere", "T", true), ("everywhere", "U", true), ("here", "T", true), ("here", "U", false),
        ("store", "U", true), ("other", "T", false), ("", "T", false),
    ])
    func `has fields that are queryable everywhere, in one class, and as the partition`(field: String, type: String, isQueryable: Bool) {
        let fields = QueryableFields(global: ["everywhere"], byType: ["T": ["here"]], indexed: "store")
        #expect(fields.contains(field, of: type) == isQueryable)
    }

    @Test func `has a partition in classes with the indexed field alone`() {
        let with = ObjectType(name: "T", properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "s", type: .int)])
        let without = ObjectType(name: "U", properties: [Property(id: 1, name: "_id", type: .int)])
        let fields = QueryableFields(indexed: "s")
        #expect(fields.indexedProperty(of: with) == 1 && fields.indexedProperty(of: without) == nil)
        #expect(QueryableFields().indexedProperty(of: with) == nil)
    }
}

/// New tags for elements that a device inserted under tags that it may have used before.
@Suite struct `Tags that are renamed` {
    private static func edit(_ random: inout SplitMix64) -> Edit {
        func reference() -> ElementRef {
            switch random.below(3) {
            case 0: .own(UInt64(random.below(6)), index: random.below(9), ValueHash(.int(1)))
            case 1: .listed(random.below(9), ValueHash(.int(1)))
            default: .seen(random.below(9))
            }
        }
        let path: [EditStep] = random.chance(50) ? [.key("k"), .element(reference())] : []
        switch random.below(4) {
        case 0: return Edit("list", path, .insert(.int(1), after: random.chance(50) ? reference() : nil, tag: UInt64(random.below(6))))
        case 1: return Edit("list", path, .move(after: random.chance(50) ? reference() : nil, tag: UInt64(random.below(6))))
        case 2: return Edit("list", path, .set(.int(2)))
        default: return Edit("list", path, .remove)
        }
    }

    private static func tag(_ tag: UInt64, era: UInt64) -> UInt64 { era << 32 | tag }

    /// The tags that an edit gives, and those that it refers to.
    private static func tags(_ edit: Edit) -> (given: [UInt64], named: [UInt64]) {
        func own(_ reference: ElementRef?) -> [UInt64] { if case .own(let tag, _, _)? = reference { [tag] } else { [] } }
        let named = edit.path.flatMap { step -> [UInt64] in if case .element(let reference) = step { own(reference) } else { [] } }
        return switch edit.action {
        case .insert(_, let after, let tag), .move(let after, let tag): ([tag], named + own(after))
        default: ([], named)
        }
    }

    @Test(arguments: seeds(20)) func `are other ones in each era, and name what they named`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let edits = (0..<30).map { _ in Self.edit(&random) }
        var renaming = TagRenaming(era: 3)
        for edit in edits { renaming.add(edit) }
        let given = Set(edits.flatMap { Self.tags($0).given })
        for edit in edits {
            var renamed = edit
            renaming.apply(to: &renamed)
            let (before, after) = (Self.tags(edit), Self.tags(renamed))
            #expect(after.given == before.given.map { Self.tag($0, era: 3) }, "seed \(seed): \(edit)")
            #expect(after.named == before.named.map { given.contains($0) ? Self.tag($0, era: 3) : $0 }, "seed \(seed): \(edit)")
            #expect(renamed.property == edit.property && renamed.path.count == edit.path.count, "seed \(seed): \(edit)")
            // A later era counts from the writer's own number again.
            var later = renamed
            var next = TagRenaming(era: 4)
            next.add(renamed)
            next.apply(to: &later)
            #expect(Self.tags(later).given == before.given.map { Self.tag($0, era: 4) }, "seed \(seed): \(edit)")
        }
    }
}
