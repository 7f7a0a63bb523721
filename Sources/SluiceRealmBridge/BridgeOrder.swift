import SluiceCore
import SluiceWire

/// The order of objects in an entry: by the bytes of their classes' names, then by those of their encoded keys.
///
/// Equal rows give equal entries, although a dictionary has no order. The keys are encoded once, and most comparisons end in their first
/// 16 bytes.
enum BridgeOrder {
    /// The encoded key of an element.
    private struct Place {
        var element: Int
        /// The first 16 bytes, big-endian and filled up with zeros.
        var prefix: (high: UInt64, low: UInt64) = (0, 0)
        /// The bytes in the buffer of all keys.
        var key: Range<Int>
    }

    /// The elements of one class.
    private struct Class {
        var name: String
        var places: [Place] = []
    }

    /// Returns elements in the order of their objects. O(n log n).
    static func sorted<Element>(_ elements: some Sequence<Element>, _ object: (Element) -> ObjectKey) -> [Element] {
        let elements = Array(elements)
        var classes: [Class] = []
        var numbers: [String: Int] = [:]
        var keys = ByteWriter(capacity: 16 * elements.count)
        var last = 0
        for (index, element) in elements.enumerated() {
            let object = object(element)
            if classes.isEmpty || classes[last].name != object.type {
                last = numbers[object.type] ?? classes.count
                if last == classes.count { classes.append(Class(name: object.type)) }
                numbers[object.type] = last
            }
            let start = keys.count
            ValueCodec.encode(object.key, into: &keys)
            classes[last].places.append(Place(element: index, key: start..<keys.count))
        }
        classes.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        return keys.withUnsafeBytes { bytes in
            classes.flatMap { Self.sorted($0.places, bytes).map { elements[$0.element] } }
        }
    }

    private static func sorted(_ places: [Place], _ bytes: UnsafeRawBufferPointer) -> [Place] {
        var places = places
        for index in places.indices { places[index].prefix = prefix(bytes, places[index].key) }
        places.sort { left, right in
            if left.prefix != right.prefix { return left.prefix < right.prefix }
            return bytes[left.key].lexicographicallyPrecedes(bytes[right.key])
        }
        return places
    }

    private static func prefix(_ bytes: UnsafeRawBufferPointer, _ key: Range<Int>) -> (high: UInt64, low: UInt64) {
        (word(bytes, key), word(bytes, min(key.lowerBound + 8, key.upperBound)..<key.upperBound))
    }

    /// Returns the first 8 bytes, filled up with zeros.
    private static func word(_ bytes: UnsafeRawBufferPointer, _ key: Range<Int>) -> UInt64 {
        if key.count >= 8 { return UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: key.lowerBound, as: UInt64.self)) }
        var word: UInt64 = 0
        for (index, place) in key.enumerated() { word |= UInt64(bytes[place]) << UInt64(56 - 8 * index) }
        return word
    }
}
