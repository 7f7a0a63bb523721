/// The type of an element, as BSON 1.1 numbers it. Deprecated types are included.
package enum BSONType: UInt8, CaseIterable, Sendable {
    case double = 0x01
    case string = 0x02
    case document = 0x03
    case array = 0x04
    case binary = 0x05
    case undefined = 0x06
    case objectId = 0x07
    case bool = 0x08
    case date = 0x09
    case null = 0x0A
    case regularExpression = 0x0B
    case dbPointer = 0x0C
    case code = 0x0D
    case symbol = 0x0E
    case codeWithScope = 0x0F
    case int32 = 0x10
    case timestamp = 0x11
    case int64 = 0x12
    case decimal128 = 0x13
    case minKey = 0xFF
    case maxKey = 0x7F
}

/// The bounds of the BSON reader.
package enum BSONLimits {
    /// The largest document, in bytes: MongoDB's 16 MiB, and the 16 KiB that its tools allow on top.
    package static let documentBytes = (16 << 20) + (16 << 10)
    /// The smallest document: a length and a terminator.
    package static let emptyDocumentBytes = 5
    /// The maximum number of documents and arrays around a value, as for JSON.
    package static let depth = JSON.maximumDepth
}

/// A defect of BSON bytes.
package struct BSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The place of the defect, in bytes from the start of the outermost document.
    package var offset: Int
    /// Part of a sentence: "the string has no terminator".
    package var problem: String

    package init(offset: Int, problem: String) {
        self.offset = offset
        self.problem = problem
    }

    package var description: String { "byte \(offset): \(problem)" }
}
