/// One edit inside a property's value: of a list element, a set member, a dictionary key or an embedded object's field, at any depth.
///
/// Together with `ObjectChange` it expresses every operation of Realm's changesets. Those address lists by the writer's own indices
/// (`ElementRef.seen`, with `priorSize`). The SDK names elements.
package struct Edit: Hashable, Sendable {
    package var property: String
    /// The steps from the property's value to the place. Empty for the value itself.
    package var path: [EditStep]
    package var action: Action
    /// The number of elements that the list had for the writer, or nil if unknown. An impossible number is a contradiction.
    package var priorSize: Int?

    package enum Action: Hashable, Sendable {
        /// Sets the value at the place. A default loses against an explicit value.
        case set(Value, isDefault: Bool = false)
        /// Adds to the integer at the place.
        case add(Int64)
        /// Makes the place a container of this kind. The contents of an existing one remain.
        case become(Container)
        /// Removes the element or the key that the path ends in.
        case remove
        /// Removes everything in the container.
        case clear(Container)
        /// Inserts into the list at the place, after an element, or at the start for nil.
        case insert(Value, after: ElementRef?, tag: UInt64)
        /// Moves the element that the path ends in after another, or to the start for nil.
        case move(after: ElementRef?, tag: UInt64)
        case setInsert(Value)
        case setErase(Value)
    }

    package enum Container: UInt8, Hashable, Sendable {
        case list = 1
        case set = 2
        case dictionary = 3
        case object = 4
    }

    package init(_ property: String, _ action: Action, priorSize: Int? = nil) {
        self.init(property, [], action, priorSize: priorSize)
    }

    package init(_ property: String, _ path: [EditStep], _ action: Action, priorSize: Int? = nil) {
        self.property = property
        self.path = path
        self.action = action
        self.priorSize = priorSize
    }
}

/// A step into a value.
package enum EditStep: Hashable, Sendable {
    /// A key of a dictionary, or the name of an embedded object's field.
    case key(String)
    case element(ElementRef)
}

/// A list element, as named by a writer that knows only its own state of the list.
package enum ElementRef: Hashable, Sendable {
    /// The index in the server's list as of the changeset's base position. If that state of the list is unknown, the hash of the value
    /// finds the element.
    case listed(Int, ValueHash)
    /// An element that the writer inserted, by the tag of the insertion. The index is the place where the writer saw it last.
    case own(UInt64, index: Int, ValueHash)
    /// The index in the list as the writer saw it: the base with all the writer's changes so far.
    case seen(Int)
}

/// Assigns new tags to elements that a writer has inserted into lists. The writer may have used its tags for other elements before.
package struct TagRenaming: Sendable {
    /// Tags below this are the writer's own count. The bits above hold the era of the renaming.
    private static let count: UInt64 = 1 << 32

    private let era: UInt64
    private var given: Set<UInt64> = []

    /// - Parameter era: A number higher than that of any earlier renaming. Its low 32 bits count.
    package init(era: UInt64) { self.era = era % Self.count }

    /// Adds the elements that the edit inserts or moves to the renamed ones.
    package mutating func add(_ edit: Edit) {
        switch edit.action {
        case .insert(_, _, let tag), .move(_, let tag): given.insert(tag)
        default: break
        }
    }

    /// Returns the tag of this era for a tag.
    package func renamed(_ tag: UInt64) -> UInt64 { era * Self.count + tag % Self.count }

    /// Replaces the tags in the edit: its own, and those of renamed elements that it refers to.
    package func apply(to edit: inout Edit) {
        edit.path = edit.path.map { if case .element(let reference) = $0 { .element(renamed(reference)) } else { $0 } }
        switch edit.action {
        case .insert(let value, let after, let tag):
            edit.action = .insert(value, after: after.map(renamed), tag: renamed(tag))
        case .move(let after, let tag): edit.action = .move(after: after.map(renamed), tag: renamed(tag))
        default: break
        }
    }

    private func renamed(_ reference: ElementRef) -> ElementRef {
        guard case .own(let tag, let index, let hash) = reference, given.contains(tag) else { return reference }
        return .own(renamed(tag), index: index, hash)
    }
}
