/// The subscribers that a change concerns, each with its transition. Reused from change to change.
///
/// Takes 8 bytes per match, and 8 per subscriber id in use, for detecting repeated subscribers.
package struct MatchResult: Sendable, RandomAccessCollection {
    package enum Transition: UInt8, Sendable { case entered, updated, left }

    package struct Element: Sendable, Hashable {
        package let subscriber: UInt32
        fileprivate(set) var images: UInt8

        package var transition: Transition {
            switch images {
            case MatchResult.before: .left
            case MatchResult.after: .entered
            default: .updated
            }
        }
    }

    static let before: UInt8 = 1
    static let after: UInt8 = 2

    private var elements: [Element] = []
    /// By subscriber: the last change that noted it (high half), and its index in `elements` (low half).
    private var stamps: [UInt64] = []
    private var change: UInt32 = 0

    package init() {}

    package var startIndex: Int { 0 }
    package var endIndex: Int { elements.count }
    package subscript(_ index: Int) -> Element { elements[index] }

    /// Removes the matches of the last change and makes room for subscriber ids below `bound`.
    mutating func begin(bound: Int) {
        elements.removeAll(keepingCapacity: true)
        if stamps.count < bound { stamps.append(contentsOf: repeatElement(0, count: bound - stamps.count)) }
        change &+= 1
        // After the change number wraps, old stamps could equal new ones.
        if change == 0 {
            for index in stamps.indices { stamps[index] = 0 }
            change = 1
        }
    }

    /// Notes matching images for the subscribers of some words. Only subscribers marked as repeated are searched for.
    mutating func note(_ words: UnsafeBufferPointer<UInt64>, images: UInt8) {
        for word in words {
            // Most subscribers have one entry in a class. They cannot occur twice, so they skip the stamps.
            if word & PredicateIndex.isRepeated == 0 {
                elements.append(Element(subscriber: UInt32(truncatingIfNeeded: word), images: images))
            } else {
                noteRepeated(UInt32(truncatingIfNeeded: word & ~PredicateIndex.isRepeated), images: images)
            }
        }
    }

    private mutating func noteRepeated(_ subscriber: UInt32, images: UInt8) {
        let stamp = stamps[Int(subscriber)]
        // A stamp of an earlier change is stale by its number, so stamps need no clearing between changes.
        if stamp >> 32 == UInt64(change) {
            elements[Int(UInt32(truncatingIfNeeded: stamp))].images |= images
        } else {
            stamps[Int(subscriber)] = UInt64(change) << 32 | UInt64(elements.count)
            elements.append(Element(subscriber: subscriber, images: images))
        }
    }
}
