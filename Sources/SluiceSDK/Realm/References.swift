/// Checks, without adding a reference, that the last reference to an object is at a known place.
/// Swift's `isKnownUniquelyReferenced` ignores weak references, but a weak reference must never reach a reused object.
///
/// The check compares the object's word of reference counts with that of a probe object.
/// If the probes do not behave as expected, every object counts as referenced elsewhere.
struct References {
    /// The count word of an object with one strong reference and no other, and of one with two.
    private let words: (one: UInt, two: UInt)?
    private static let known = look()

    /// Caches the words for a series of checks: reading the static costs as much as a comparison.
    init() { words = References.known }

    // Not optimized: the optimizer would change the reference counts that are measured here.
    @_optimize(none) private static func look() -> (one: UInt, two: UInt)? {
        var probes = [Probe()]
        let one = firstWord(probes)
        probes.append(probes[0])
        let two = firstWord(probes)
        probes.removeLast()
        guard one != two, firstWord(probes) == one else { return nil }
        // Unowned and weak references must change the word too; otherwise the check could not detect them.
        guard withExtendedLifetime(Unowned(probes[0]), { firstWord(probes) }) != one else { return nil }
        guard withExtendedLifetime(Weak(probes[0]), { firstWord(probes) }) != one else { return nil }
        return (one, two)
    }

    @_optimize(none) private static func firstWord(_ probes: [Probe]) -> UInt {
        probes.withUnsafeBytes { holders($0, 0) } ?? 0
    }

    /// `true` if the array's element at the index is the only reference to its object; `false` for nil.
    func isOnly<Element: AnyObject>(_ array: borrowing [Element?], at index: Int) -> Bool {
        guard let words else { return false }
        return array.withUnsafeBytes { References.holders($0, index) } == words.one
    }

    /// `true` if there are exactly two references to the object at the index.
    func isOneOfTwo<Element: AnyObject>(_ array: borrowing [Element], at index: Int) -> Bool {
        guard let words else { return false }
        return array.withUnsafeBytes { References.holders($0, index) } == words.two
    }

    /// The count word of the object at an index; nil for a nil reference.
    private static func holders(_ references: UnsafeRawBufferPointer, _ index: Int) -> UInt? {
        pointer(references.load(fromByteOffset: index * MemoryLayout<UInt>.size, as: UInt.self)).map(word)
    }

    private static func pointer(_ bits: UInt) -> UnsafeRawPointer? { UnsafeRawPointer(bitPattern: bits) }

    /// The word after the object's type pointer.
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
