import RealmTestSupport
import SluiceCore
import SluiceRealm
import TestSupport
import Testing

/// The model of a client's transform: two writers who exchange their changes end with one state.
@Suite struct PendingTransformTests {
    private static let object = ObjectKey(type: "Note", key: .int(1))
    private static let place = ObjectType(
        name: "Place", kind: .embedded,
        properties: [
            Property(id: 1, name: "x", type: .int, isOptional: true), Property(id: 2, name: "marks", type: .int, collection: .list),
        ], primaryKey: nil)
    private static let note = ObjectType(
        name: "Note",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "size", type: .int, isOptional: true),
            Property(id: 3, name: "tags", type: .int, collection: .list), Property(id: 4, name: "flags", type: .int, collection: .set),
            Property(id: 5, name: "extra", type: .int, collection: .dictionary),
            Property(id: 6, name: "place", type: .embedded("Place"), isOptional: true),
            Property(id: 7, name: "blend", type: .mixed),
        ])

    @Test(arguments: seeds(20)) func `leads both writers to one state`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let start = try Self.start(&random)
            let (a, b) = (try Self.instruction(start, &random), try Self.instruction(start, &random))
            let (left, right) = PendingTransform.pair(a, b, isLater: random.chance(50))
            var (first, second) = (start, start)
            try first.apply([a] + (right.map { [$0] } ?? []))
            try second.apply([b] + (left.map { [$0] } ?? []))
            let outcome = "\(a) and \(b) of \(start.objects) became \([left, right])"
            #expect(first.objects == second.objects, "seed \(seed): \(outcome)")
        }
    }

    @Test func `discards an edit inside of a value that is replaced, and keeps one beside a Clear`() {
        let place = RealmPath(Self.object, "place")
        let x = RealmInstruction.update(RealmPath(Self.object, "place", [.key("x")]), .value(.int(1)))
        let null = RealmInstruction.update(place, .value(.null))
        #expect(Self.pair(null, x) == [null, nil])
        let made = RealmInstruction.update(place, .container(.object))
        #expect(Self.pair(made, x) == [made, x])
        let clear = RealmInstruction.clear(RealmPath(Self.object, "place", [.key("marks")]), .list)
        #expect(Self.pair(clear, x) == [clear, x])
    }

    private static func pair(_ early: RealmInstruction, _ late: RealmInstruction) -> [RealmInstruction?] {
        let (left, right) = PendingTransform.pair(early, late, isLater: false)
        return [left, right]
    }

    // MARK: Draws

    private static func start(_ random: inout SplitMix64) throws -> RealmModel {
        var model = RealmModel(Schema([note, place]))
        try model.apply([.createObject(object), .update(RealmPath(object, "size"), .value(.int(5)))])
        try fill(RealmPath(object, "tags"), &model, &random)
        if random.chance(70) {
            try model.apply(.update(RealmPath(object, "place"), .container(.object)))
            try fill(RealmPath(object, "place", [.key("marks")]), &model, &random)
        }
        if random.chance(70) {
            let blend = RealmPath(object, "blend")
            try model.apply(.update(blend, .container(.list)))
            let size = try fill(blend, &model, &random)
            if random.chance(50) { try model.apply(.arrayInsert(blend, at: 0, .container(.dictionary), priorSize: size)) }
        }
        return model
    }

    /// - Returns: The number of elements.
    @discardableResult
    private static func fill(_ list: RealmPath, _ model: inout RealmModel, _ random: inout SplitMix64) throws -> Int {
        let size = random.below(4)
        for index in 0..<size { try model.apply(.arrayInsert(list, at: index, .value(.int(Int64(index))), priorSize: index)) }
        return size
    }

    /// Returns an instruction that a client in the state can write.
    private static func instruction(_ model: RealmModel, _ random: inout SplitMix64) throws -> RealmInstruction {
        let values = model.objects[object] ?? [:]
        let number = RealmPayload.value(.int(Int64(random.below(3))))
        func path(_ name: String, _ steps: RealmStep...) -> RealmPath { RealmPath(object, name, steps) }
        switch random.below(14) {
        case 0: return .update(path("size"), random.chance(20) ? .value(.null) : number, isDefault: random.chance(20))
        case 1: return .addInteger(path("size"), 1)
        case 2, 3, 4: return list(path("tags"), values["tags"] ?? .null, &random)
        case 5: return random.chance(50) ? .setInsert(path("flags"), number) : .setErase(path("flags"), number)
        case 6: return random.chance(30) ? .clear(path("flags"), .set) : .clear(path("extra"), .dictionary)
        case 7: return .update(path("extra", .key("a")), number)
        case 8: return .update(path("place"), random.chance(50) ? .value(.null) : .container(.object))
        case 9, 10:
            guard case .dictionary(let fields)? = values["place"] else { return .update(path("place"), .container(.object)) }
            if random.chance(40) { return .update(path("place", .key("x")), number) }
            return list(path("place", .key("marks")), fields["marks"] ?? .null, &random)
        case 11:
            // A list is not made a list again: clients keep its elements, and differ if the other one writes another value.
            let isList = if case .list? = values["blend"] { true } else { false }
            return .update(path("blend"), random.pick([number, .container(.dictionary), isList ? number : .container(.list)]))
        default:
            guard case .list(let elements)? = values["blend"] else { return .update(path("blend"), .container(.list)) }
            if case .dictionary? = elements.first, random.chance(50) { return .update(path("blend", .index(0), .key("k")), number) }
            return list(path("blend"), .list(elements), &random)
        }
    }

    /// Without moves: those of real clients do not always lead to one state.
    private static func list(_ path: RealmPath, _ value: Value, _ random: inout SplitMix64) -> RealmInstruction {
        guard case .list(let elements) = value, !elements.isEmpty else {
            return .arrayInsert(path, at: 0, .value(.int(Int64(random.below(100)))), priorSize: 0)
        }
        let (size, index) = (elements.count, random.below(elements.count))
        switch random.below(7) {
        case 0...2: return .arrayInsert(path, at: random.below(size + 1), .value(.int(Int64(random.below(100)))), priorSize: size)
        case 3: return .arrayErase(path, at: index, priorSize: size)
        case 4, 5: return .arrayUpdate(path, at: index, .value(.int(Int64(random.below(100)))), priorSize: size)
        default: return .clear(path, .list)
        }
    }
}
