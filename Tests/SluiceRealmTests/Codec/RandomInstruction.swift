import SluiceCore
import SluiceRealm
import SluiceValues
import TestSupport

/// Instructions that follow from a seed, extremes included.
struct RandomInstruction {
    var random: SplitMix64
    /// Few names, so that strings are referred to more than once.
    var names = ["", "a", "_id", "Task", "水", "e\u{301}", "é", "a\0"]
    /// The keys of objects. Empty for any.
    var keys: [Value] = []
    var indices = [0, 1, 2, 63, 64, 300, Int(UInt32.max)]

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func changeset() -> [RealmInstruction] { (0..<random.below(12)).map { _ in next() } }

    mutating func next() -> RealmInstruction {
        switch random.below(15) {
        case 0: .addTable(table())
        case 1: .eraseTable(name())
        case 2: .addColumn(column())
        case 3: .eraseColumn(table: name(), name: name())
        case 4: .createObject(object())
        case 5: .eraseObject(object())
        case 6: .addInteger(path(), random.pick([.min, -1, 0, 1, .max]))
        case 7: .arrayInsert(path(), at: index(), payload(), priorSize: index())
        case 8: .arrayMove(path(), from: index(), to: index(), priorSize: index())
        case 9: .arrayErase(path(), at: index(), priorSize: index())
        case 10: .clear(path(), random.pick(CollectionKind.allCases))
        case 11: .setInsert(path(), payload())
        case 12: .setErase(path(), payload())
        case 13: .arrayUpdate(path(), at: index(), payload(), priorSize: index())
        default: update()
        }
    }

    private mutating func update() -> RealmInstruction {
        var path = path()
        if case .index? = path.steps.last { path.steps.append(.key(name())) }
        return .update(path, payload(), isDefault: random.chance(30))
    }

    private mutating func table() -> RealmTable {
        let kind = random.pick(ObjectKind.allCases)
        let key = RealmTable.Key(name(), random.pick([.int, .string, .objectId, .uuid]), isNullable: random.chance(50))
        return RealmTable(name(), kind, key: kind == .embedded ? nil : key)
    }

    private mutating func column() -> RealmColumn {
        let types: [PropertyType] = [
            .bool, .int, .float, .double, .decimal, .string, .binary, .timestamp, .objectId, .uuid, .mixed, .link(to: name()),
        ]
        return RealmColumn(name(), name(), random.pick(types), isNullable: random.chance(50), random.pick(CollectionKind.allCases))
    }

    private mutating func object() -> ObjectKey { ObjectKey(type: name(), key: key()) }

    private mutating func key() -> Value {
        if !keys.isEmpty { return random.pick(keys) }
        return switch random.below(5) {
        case 0: .null
        case 1: .int(random.pick([.min, -64, -1, 0, 63, 64, .max]))
        case 2: .string(name())
        case 3: .objectId(ObjectIdentifierBytes(high: random.next(), low: UInt32(truncatingIfNeeded: random.next())))
        default: .uuid(UUIDBytes(high: random.next(), low: random.next()))
        }
    }

    private mutating func path() -> RealmPath {
        RealmPath(object(), name(), (0..<random.below(4)).map { _ in random.chance(50) ? .index(index()) : .key(name()) })
    }

    private mutating func payload() -> RealmPayload {
        switch random.below(10) {
        case 0: return .container(random.pick([.list, .set, .dictionary, .object]))
        case 1: return .erased
        case 2: return .value(.link(type: name(), key: key()))
        default:
            let value = Value.random(using: &random, depth: 3)
            // At this depth, the generator returns scalars alone.
            return .value(value)
        }
    }

    private mutating func name() -> String { random.pick(names) }
    private mutating func index() -> Int { random.pick(indices) }
}
