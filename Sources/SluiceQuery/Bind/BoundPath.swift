/// A path as a series of small steps, each of which turns what it stands on into nothing, one thing or several.
package struct BoundPath: Hashable, Sendable {
    package var steps: [BoundStep]
    package var result: Result
    /// The type of its values.
    package var type: BoundType
    /// Whether it may give several values, or none.
    package var isMany: Bool
    /// What an unquantified list literal is compared with pair by pair.
    package var sequence: Sequence

    package enum Result: Hashable, Sendable {
        case values
        /// The bytes of a text, the members of a container; null has none.
        case size
        /// How many things the steps reach, one number in all.
        case objectCount
        /// All links to the objects reached, from wherever.
        case incomingCount
        /// The type of each value, as `TypeMask`.
        case types
    }

    package enum Sequence: Hashable, Sendable {
        case none
        /// A list of scalars of the object itself, or one reached through links to one object each.
        case list
        case set
        /// Values reached through several links.
        case objects
    }
}

package enum BoundStep: Hashable, Sendable {
    /// From the object that a SUBQUERY has given this number, counted from the outside; 0 is the row itself. Always the first step.
    case variable(Int)
    /// From an object to a property's value as the row stores it.
    case property(Int)
    /// From a stored key to the object of this type.
    case follow(Int)
    /// From a stored dictionary to the embedded object of this type. The property is where it came from.
    case embedded(Int)
    /// From an object to those whose property links to it.
    case incoming(type: Int, property: Int)
    /// From a stored key to a link as a value.
    case link(to: String)
    /// From a list or dictionary to its elements, those of a dictionary in the order of their keys.
    case every
    case keys
    case index(Int)
    case first, last
    case key(String)
    /// From a text to its length in bytes.
    case length

    /// Whether it turns one thing into several.
    var isMany: Bool {
        switch self {
        case .every, .keys, .incoming: true
        default: false
        }
    }
}
