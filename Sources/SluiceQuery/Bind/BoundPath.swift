/// A path as a series of small steps. Each maps one thing to none, one or several.
package struct BoundPath: Hashable, Sendable {
    package var steps: [BoundStep]
    package var result: Result
    /// The type of the path's values.
    package var type: BoundType
    /// `true` if the path may have several values, or none.
    package var isMany: Bool
    /// The kind of sequence that an unquantified list literal compares with pair by pair.
    package var sequence: Sequence

    package enum Result: Hashable, Sendable {
        case values
        /// The bytes of a text, or the members of a container. Null has none.
        case size
        /// The number of things that the steps reach, as one number in all.
        case objectCount
        /// The number of links from any object to the objects reached.
        case incomingCount
        /// The type of each value, as `TypeMask`.
        case types
    }

    package enum Sequence: Hashable, Sendable {
        case none
        /// A list of scalars of the object itself, or of one reached through links to one object each.
        case list
        case set
        /// Values reached through links to many objects.
        case objects
    }
}

package enum BoundStep: Hashable, Sendable {
    /// The object to which a SUBQUERY gave this number, counted from the outside. 0 is the row itself. Always the first step.
    case variable(Int)
    /// From an object to the stored value of a property.
    case property(Int)
    /// From a stored key to the object of this class.
    case follow(Int)
    /// From a stored dictionary to the embedded object of this class.
    case embedded(Int)
    /// From an object to those with a property that links to it.
    case incoming(type: Int, property: Int)
    /// From a stored key to a link as a value.
    case link(to: String)
    /// From a list or dictionary to its elements. The elements of a dictionary are in the order of their keys.
    case every
    case keys
    case index(Int)
    case first, last
    case key(String)
    /// From a text to its length in bytes.
    case length

    /// `true` if the step maps one thing to several.
    var isMany: Bool {
        switch self {
        case .every, .keys, .incoming: true
        default: false
        }
    }
}
