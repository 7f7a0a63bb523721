/// Tells, without counting a reference, whether the last one to an object is at a place that is known. `isKnownUniquelyReferenced`
/// does not see weak references, and a weak reference must never lead to what an object has become since.
///
/// It compares the word of an object that holds its counts. What the word looks like is found out with an object of our own;
/// where that does not go as expected every object counts as held by others.
struct References {
    /// The word of an object with one strong reference and nothing else, and of one with two.
    private let words: (one: UInt, two: UInt)?
    private static let known = look()

    /// For many questions in a row: asking for what is known costs as much as a comparison.
    init() { words = References.known }

    // As it is written, since the counts are what is looked at.
    @_optimize(none) private static func look() -> (one: UInt, two: UInt)? {
        var probes = [Probe()]
        let one = firstWord(probes)
        probes.append(probes[0])
        let two = firstWord(probes)
        probes.removeLast()
        guard one != two, firstWord(probes) == one else { return nil }
        guard withExtendedLifetime(Unowned(probes[0]), { firstWord(probes) }) != one else { return nil }
        guard withExtendedLifetime(Weak(probes[0]), { firstWord(probes) }) != one else { return nil }
        return (one, two)
    }

    @_optimize(none) private static func firstWord(_ probes: [Probe]) -> UInt {
        probes.withUnsafeBytes { holders($0, 0) } ?? 0
    }

    /// Whether the reference that the array has at the index is the only one to the object there; false for nil.
    func isOnly<Element: AnyObject>(_ array: borrowing [Element?], at index: Int) -> Bool {
        guard let words else { return false }
        return array.withUnsafeBytes { References.holders($0, index) } == words.one
    }

    /// Whether there are exactly two references to the object that the array has at the index.
    func isOneOfTwo<Element: AnyObject>(_ array: borrowing [Element], at index: Int) -> Bool {
        guard let words else { return false }
        return array.withUnsafeBytes { References.holders($0, index) } == words.two
    }

    /// The word of the object that the reference at an index leads to; nil for none.
    private static func holders(_ references: UnsafeRawBufferPointer, _ index: Int) -> UInt? {
        pointer(references.load(fromByteOffset: index * MemoryLayout<UInt>.size, as: UInt.self)).map(word)
    }

    private static func pointer(_ bits: UInt) -> UnsafeRawPointer? { UnsafeRawPointer(bitPattern: bits) }

    /// Behind the pointer to the object's type.
    private static func word(_ object: UnsafeRawPointer) -> UInt { object.load(fromByteOffset: MemoryLayout<UInt>.size, as: UInt.self) }

    private final class Probe {}

    private final class Unowned {
        unowned let probe: Probe
        init(_ probe: Probe) { self.probe = probe }
    }

    private final class Weak {
        weak var probe: Probe?
        init(_ probe: Probe) { self.probe = probe }
    }
}
