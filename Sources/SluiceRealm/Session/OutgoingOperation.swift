package import SluicePorts

/// One operation of a changeset for a client, as far as the client could refuse it.
///
/// The codec's instructions map to these cases. Keys are in the encoding of changesets, with a length-prefixed string. Operations on sets
/// and dictionaries are updates.
package enum OutgoingOperation: Hashable, Sendable {
    /// An object, by its class and primary key.
    package struct Object: Hashable, Sendable {
        package var table: String
        package var key: [UInt8]

        package init(table: String, key: [UInt8]) {
            (self.table, self.key) = (table, key)
        }
    }

    /// A place in an object.
    package struct Path: Hashable, Sendable {
        package enum Element: Hashable, Sendable {
            case index(UInt32)
            /// A dictionary's key, or a property of an embedded object.
            case key(String)
        }

        package var object: Object
        package var property: String
        /// Without the index of the operation itself.
        package var elements: [Element]

        package init(object: Object, property: String, elements: [Element] = []) {
            (self.object, self.property, self.elements) = (object, property, elements)
        }
    }

    /// The effect of a new value on a list at its place.
    package enum Shape: Hashable, Sendable {
        /// A list at the place, if any, is gone.
        case value
        /// A list at the place keeps its content; any other value becomes an empty list.
        case list
    }

    /// A list of an object that enters.
    package struct List: Hashable, Sendable {
        package var property: String
        /// At least 1.
        package var count: UInt32

        package init(property: String, count: UInt32) {
            (self.property, self.count) = (property, count)
        }
    }

    /// An object that enters. The model knows objects by their hashes, and a view has very many.
    package struct Entered: Hashable, Sendable {
        package var hash: UInt64
        /// The lists of its properties that are not empty.
        package var lists: [List]

        init(hash: UInt64, _ lists: [List]) { (self.hash, self.lists) = (hash, lists) }

        package init(_ object: Object, _ lists: [List]) { self.init(hash: ClientModel.hash(object), lists) }
    }

    case addTable(String)
    case addColumn(table: String, name: String)
    case eraseTable(String)
    case eraseColumn(table: String, name: String)
    case create(Object)
    case erase(Object)
    /// The erasures and the creations of objects with all their values.
    case enter([Entered])
    case update(Path, Shape)
    case insert(Path, index: UInt32, size: UInt32)
    case set(Path, index: UInt32)
    case move(Path, from: UInt32, to: UInt32, size: UInt32)
    case remove(Path, index: UInt32, size: UInt32)
    case clear(Path)
}

/// A stream entry with the operations of its changeset.
package struct OutgoingEntry: Hashable, Sendable {
    package var entry: RealmStreamEntry
    package var operations: [OutgoingOperation]

    package init(entry: RealmStreamEntry, operations: [OutgoingOperation]) {
        (self.entry, self.operations) = (entry, operations)
    }
}
