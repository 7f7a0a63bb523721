public import Foundation
package import SluiceValues
import Synchronization

/// A 12-byte identifier: 4 bytes of seconds since 1970, 5 random bytes of this process, and a 3-byte counter.
public final class ObjectId: Hashable, Comparable, Codable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    package let bytes: ObjectIdentifierBytes

    private static let process = UInt64.random(in: 0..<(1 << 40))
    private static let counter = Atomic<UInt32>(UInt32.random(in: 0..<(1 << 24)))

    /// Creates a unique identifier with the current time.
    public init() { bytes = ObjectId.next(seconds: UInt32(truncatingIfNeeded: Int64(Date().timeIntervalSince1970))) }

    /// Parses 24 hexadecimal digits.
    /// - Throws: `Realm.Error.invalidInput` for anything else.
    public init(string: String) throws {
        guard let bytes = ObjectIdentifierBytes(hex: string) else {
            throw Realm.Error(.invalidInput, "The ObjectId '\(string)' is not 24 hexadecimal digits.")
        }
        self.bytes = bytes
    }

    /// Parses a literal of 24 hexadecimal digits. Anything else ends the program.
    public init(_ text: StaticString) {
        guard let bytes = ObjectIdentifierBytes(hex: "\(text)") else {
            throwRealmException("The ObjectId '\(text)' is not 24 hexadecimal digits.")
        }
        self.bytes = bytes
    }

    /// Parses 24 hexadecimal digits; nil for anything else. Literals use the other initializer.
    @_disfavoredOverload public init?(_ description: String) {
        guard let bytes = ObjectIdentifierBytes(hex: description) else { return nil }
        self.bytes = bytes
    }

    /// Creates a unique identifier with a given time. The other arguments are ignored.
    public init(timestamp: Date, machineId: Int = 0, processId: Int = 0) {
        bytes = ObjectId.next(seconds: UInt32(clamping: timestamp.timestamp.seconds))
    }

    package init(_ bytes: ObjectIdentifierBytes) { self.bytes = bytes }

    /// Creates a unique identifier with the current time.
    public static func generate() -> ObjectId { ObjectId() }

    private static func next(seconds: UInt32) -> ObjectIdentifierBytes {
        let number = counter.wrappingAdd(1, ordering: .relaxed).newValue & 0xFF_FFFF
        return ObjectIdentifierBytes(
            high: UInt64(seconds) << 32 | process >> 8, low: UInt32(truncatingIfNeeded: process & 0xFF) << 24 | number)
    }

    /// The identifier as 24 lower-case hexadecimal digits.
    public var stringValue: String { bytes.description }
    public var description: String { stringValue }
    /// The time of creation, in whole seconds.
    public var timestamp: Date { Date(timeIntervalSince1970: TimeInterval(bytes.high >> 32)) }

    public static func == (lhs: ObjectId, rhs: ObjectId) -> Bool { lhs.bytes == rhs.bytes }
    public static func < (lhs: ObjectId, rhs: ObjectId) -> Bool { lhs.bytes < rhs.bytes }
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

    public convenience init(from decoder: any Decoder) throws {
        try self.init(string: try decoder.singleValueContainer().decode(String.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(stringValue)
    }
}
