/// One thing done inside of a property's value: to an element of a list, a member of a set, a key of a dictionary, a field of
/// an embedded object, at any depth.
///
/// Together with `ObjectChange` it says everything that the original's changesets said about objects. There lists were
/// addressed by the writer's own indices (`ElementRef.seen`, with `priorSize`); our SDK names elements.
package struct Edit: Hashable, Sendable {
    package var property: String
    /// From the property's value to the place; empty: the value itself.
    package var path: [EditStep]
    package var action: Action
    /// How many elements the list had for the writer; nil when the writer does not say. One that cannot be is a contradiction (CR-26).
    package var priorSize: Int?

    package enum Action: Hashable, Sendable {
        /// A value stands at the place. A default loses against anything that was given (CR-6).
        case set(Value, isDefault: Bool = false)
        /// To the integer at the place (CR-8).
        case add(Int64)
        /// The place is such a container. The contents of one that is there stay (CR-21, CR-24).
        case become(Container)
        /// The element or the key that the path ends in.
        case remove
        /// Everything in the container (CR-16).
        case clear(Container)
        /// Into the list at the place, behind an element; nil: at the start.
        case insert(Value, after: ElementRef?, tag: UInt64)
        /// The element that the path ends in, behind another; nil: to the start.
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
    /// Of a dictionary, or the name of an embedded object's field.
    case key(String)
    case element(ElementRef)
}

/// An element of a list, as a writer names it who knows the list of their own time only.
package enum ElementRef: Hashable, Sendable {
    /// By its index in the server's list as the changeset's base position had it. The hash of its value finds it should the
    /// list of that time not be known.
    case listed(Int, ValueHash)
    /// One that the writer put there: by the tag of the insertion. The index is where the writer saw it last.
    case own(UInt64, index: Int, ValueHash)
    /// By its index in the list as the writer saw it: the base with all the writer's changes so far.
    case seen(Int)
}

/// Other tags for elements that a writer has put into lists: those that it gave may have been given before, by the same writer, to others.
package struct TagRenaming: Sendable {
    /// Tags below this are a writer's count; above it stands which renaming they are of.
    private static let count: UInt64 = 1 << 32

    private let era: UInt64
    private var given: Set<UInt64> = []

    /// - Parameter era: higher than that of any renaming before; its low 32 bits count.
    package init(era: UInt64) { self.era = era % Self.count }

    /// The elements that the edit puts there are among those that are renamed.
    package mutating func add(_ edit: Edit) {
        switch edit.action {
        case .insert(_, _, let tag), .move(_, let tag): given.insert(tag)
        default: break
        }
    }

    /// The tag that comes after those of before.
    package func renamed(_ tag: UInt64) -> UInt64 { era * Self.count + tag % Self.count }

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
