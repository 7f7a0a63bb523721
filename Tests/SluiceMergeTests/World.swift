import SluiceCore
import SluiceMerge

/// A class with one property of each kind that merges differently.
let thing = ObjectType(
    name: "Thing",
    properties: [
        Property(id: 1, name: "_id", type: .int),
        Property(id: 2, name: "name", type: .string, isOptional: true),
        Property(id: 3, name: "count", type: .int, isOptional: true),
        Property(id: 4, name: "any", type: .mixed),
        Property(id: 7, name: "owner", type: .link(to: "Person"), isOptional: true),
    ])

extension ObjectChange {
    static func create(
        _ values: [String: Value] = [:], defaults: Set<String> = []
    ) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .create, values: values, defaults: defaults)
    }

    static func set(_ values: [String: Value]) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, values: values)
    }

    static func add(_ amount: Int64, to name: String = "count") -> ObjectChange {
        ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, counters: [name: amount])
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
            "client \(client) at \(time) (saw \(seen)): \(change.kind) \(change.values) \(change.counters) defaults \(change.defaults)"
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

    init(_ steps: [Step] = []) throws {
        for step in steps { try take(step) }
    }

    mutating func take(_ step: Step) throws {
        steps += 1
        switch step {
        case .sql(let time, nil):
            row = nil
            rowTime = time
        case .sql(let time, let values?):
            row = (row ?? [:]).merging(values) { _, new in new }
            rowTime = time
        case .client(let client, let time, let seen, let change):
            // A row that is gone has no time: the server's clock is a millisecond on.
            var state = try state(now: rowTime)
            let writer = WriteContext(
                stamp: WriteStamp(time: HybridTime(milliseconds: time), client: ClientID(rawValue: client)),
                base: LSN(rawValue: UInt64(seen)), now: LSN(rawValue: steps - 1))
            lastEffect = try Merge.apply(change, by: writer, to: &state, type: thing)
            if state.values != row { rowTime = max(rowTime, time) + World.delay }
            row = state.values
            clocks = state.clocks.encoded
        }
    }

    func state(now: Int64) throws -> ObjectState {
        ObjectState(row: row, clocks: try clocks.map { try ObjectClocks(encoded: $0) }, type: thing, rowTime: now)
    }

    /// The values that are not null.
    var shown: [String: Value]? { row?.filter { !$0.value.isNull } }
}
