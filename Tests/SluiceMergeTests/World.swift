import SluiceCore
import SluiceMerge
import TestSupport

/// A class with one property of each kind that merges differently.
let thing = ObjectType(
    name: "Thing",
    properties: [
        Property(id: 1, name: "_id", type: .int),
        Property(id: 2, name: "name", type: .string, isOptional: true),
        Property(id: 3, name: "count", type: .int, isOptional: true),
        Property(id: 4, name: "any", type: .mixed),
        Property(id: 5, name: "note", type: .string, isOptional: true),
        Property(id: 6, name: "remark", type: .string, isOptional: true),
        Property(id: 7, name: "owner", type: .link(to: "Person"), isOptional: true),
    ])

/// The same with a property of each kind that has an inside.
let folder = ObjectType(
    name: "Thing",
    properties: thing.properties + [
        Property(id: 8, name: "list", type: .string, collection: .list),
        Property(id: 9, name: "set", type: .int, collection: .set),
        Property(id: 10, name: "map", type: .mixed, collection: .dictionary),
        Property(id: 11, name: "child", type: .embedded("Child"), isOptional: true),
        Property(id: 12, name: "children", type: .embedded("Child"), collection: .list),
        Property(id: 13, name: "friends", type: .link(to: "Person"), collection: .list),
    ])

extension ObjectChange {
    static func create(
        _ values: [String: Value] = [:], defaults: Set<String> = [], seen: [String: ValueHash] = [:]
    ) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .create, values: values, defaults: defaults, seen: seen)
    }

    static func set(_ values: [String: Value], seen: [String: ValueHash] = [:]) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, values: values, seen: seen)
    }

    static func add(_ amount: Int64, to name: String = "count", seen: [String: ValueHash] = [:]) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, counters: [name: amount], seen: seen)
    }

    static func edit(_ edits: Edit...) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, edits: edits)
    }

    static let delete = ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .delete)
}

/// A step of somebody's work on one object.
enum Step: CustomStringConvertible {
    /// A changeset of a client at a time; `seen` is the number of steps that the server had taken when it was made.
    case client(UInt64, at: Int64, seen: Int = 0, ObjectChange)
    /// A statement of another program: it sets these values of the row, which is made if need be; nil deletes it.
    case sql(at: Int64, [String: Value]?)

    var description: String {
        switch self {
        case .client(let client, let time, let seen, let change):
            "client \(client) at \(time) (saw \(seen)): \(change.kind) \(change.values) \(change.counters) defaults \(change.defaults) \(change.edits) saw \(change.seen)"
        case .sql(let time, let values): "SQL at \(time): \(values.map { "\($0)" } ?? "delete")"
        }
    }
}

/// The gateway and its table, reduced to one object: the row, its stored clocks, the time of its last transaction.
struct World {
    var row: [String: Value]?
    var clocks: [UInt8]?
    var rowTime: Int64 = 0
    var steps: UInt64 = 0
    var lastEffect: MergeEffect?
    /// How long changes are on their way to the gateway, milliseconds.
    static let delay: Int64 = 100
    var type = thing

    /// `true` for clients whose changesets have numbers in the clocks.
    private let isNumbered: Bool

    init(_ steps: [Step] = [], _ type: ObjectType = thing, isNumbered: Bool = false) throws {
        (self.type, self.isNumbered) = (type, isNumbered)
        for step in steps { try take(step) }
    }

    mutating func take(_ step: Step) throws {
        steps += 1
        switch step {
        case .sql(let time, nil):
            row = nil
            rowTime = time
        case .sql(let time, let values?):
            // As the columns' defaults have it.
            let empty = Dictionary(uniqueKeysWithValues: type.properties.map { ($0.name, $0.emptyValue) })
            row = (row ?? empty).merging(values) { _, new in new }
            rowTime = time
        case .client(let client, let time, let seen, let change):
            // A row that is gone has no time: the server's clock is a millisecond on.
            var state = try state(now: rowTime)
            var writer = WriteContext(
                stamp: WriteStamp(time: HybridTime(milliseconds: time), client: ClientID(rawValue: client)),
                base: LSN(rawValue: UInt64(seen)), now: LSN(rawValue: steps - 1))
            if isNumbered { writer.changeset = UInt64(steps) }
            lastEffect = try Merge.apply(change, by: writer, to: &state, type: type)
            if state.values != row { rowTime = max(rowTime, time) + World.delay }
            row = state.values
            clocks = state.clocks.encoded
        }
    }

    func state(now: Int64) throws -> ObjectState {
        ObjectState(row: row, clocks: try clocks.map { try ObjectClocks(encoded: $0) }, type: type, rowTime: now)
    }

    /// The values that are not null or empty.
    var shown: [String: Value]? { row?.filter { !$0.value.isNull && $0.value != .list([]) && $0.value != .dictionary([:]) } }
}

/// The steps of all in a random order that keeps each one's own.
func randomOrder(_ histories: [[Step]], _ generator: inout SplitMix64) -> [Step] {
    var rest = histories
    var order: [Step] = []
    while let index = rest.indices.filter({ !rest[$0].isEmpty }).randomElement(using: &generator) {
        order.append(rest[index].removeFirst())
    }
    return order
}
