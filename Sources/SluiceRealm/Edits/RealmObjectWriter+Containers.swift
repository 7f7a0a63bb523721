package import SluiceCore
import SluiceValues

/// The protection of a client's file against a defect of realm-core 14 with lists and dictionaries in mixed values.
///
/// A file has the objects of a class in blocks of up to 256, in the order of their creation. Beside the values of a mixed property, a block
/// has an array with the keys of its containers. It begins with the first container, and ends at the object with it. If an object behind
/// that end is created or erased, by the app or by an entry, the client overwrites memory and soon ends.
///
/// A container in the last object of a block makes the array complete, and it stays so. A new object is always the last one. Therefore:
///
/// 1. An object that enters has a container in each mixed property first (`enter`).
/// 2. A transient object with containers precedes a view, and each container for an object that the client holds. It follows changesets in
///    which the client made objects. It completes the block of those objects (`prepareContainers`).
///
/// A block stays incomplete if the client filled it at once, with 256 objects between two entries.
extension RealmObjectWriter {
    /// Returns the instructions that make the arrays of a class's last block complete. Empty for a class without mixed values.
    ///
    /// They create an object, write containers into it, and erase it. Observers do not see it, because an entry is one transaction.
    /// - Parameter number: A number for the object's key, which differs by entry and which other clients cannot foresee.
    package func prepareContainers(in type: ObjectType, _ number: UInt64) -> [RealmInstruction] {
        let names = type.properties.filter(\.isMixed).map(\.name)
        guard type.kind == .topLevel, !names.isEmpty, let key = type.primaryKey,
            let value = Self.transientKey(type.properties[key].type, number)
        else { return [] }
        let object = ObjectKey(type: type.name, key: value)
        let containers = names.map { RealmInstruction.update(RealmPath(object, $0), .container(.dictionary)) }
        return [.createObject(object)] + containers + [.eraseObject(object)]
    }

    private static func transientKey(_ type: PropertyType, _ number: UInt64) -> Value? {
        let (high, low) = (mixed(number), mixed(~number))
        switch type {
        case .int: return .int(Int64(bitPattern: high))
        case .string: return .string("transient \(String(high, radix: 16)) \(String(low, radix: 16))")
        case .objectId: return .objectId(ObjectIdentifierBytes(high: high, low: UInt32(truncatingIfNeeded: low)))
        case .uuid: return .uuid(UUIDBytes(high: high, low: low))
        default: return nil
        }
    }

    /// The finalizer of SplitMix64. Equal numbers give equal keys, so a repeated bootstrap has equal bytes.
    private static func mixed(_ number: UInt64) -> UInt64 {
        var state = number &+ 0x9E37_79B9_7F4A_7C15
        state = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        state = (state ^ (state >> 27)) &* 0x94D0_49BB_1331_11EB
        return state ^ (state >> 31)
    }
}

extension Property {
    /// `true` if the property's own value is mixed.
    var isMixed: Bool { RealmPlace(self).isMixed }
}

extension RealmEmitter {
    /// Writes the mixed value of a new object, with a container before it in any case.
    mutating func fillMixed(_ cursor: RealmCursor, with value: Value) throws(SluiceError) {
        switch value {
        case .list, .dictionary: break
        default: instructions.append(.update(path(cursor), .container(.dictionary)))
        }
        try set(cursor, to: value)
    }
}
