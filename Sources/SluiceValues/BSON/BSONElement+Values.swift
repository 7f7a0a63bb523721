extension BSONElement {
    /// The number of a double, date, timestamp or integer of 64 bits, as bits.
    ///
    /// - Precondition: The type is one of these.
    package var bits64: UInt64 { content.loadUnaligned(as: UInt64.self).littleEndianValue }

    package var double: Double { Double(bitPattern: bits64) }
    package var int64: Int64 { Int64(bitPattern: bits64) }
    package var int32: Int32 { content.loadUnaligned(as: Int32.self).littleEndianValue }
    package var bool: Bool { content[0] != 0 }

    package var decimal: Decimal128 {
        Decimal128(
            high: content.loadUnaligned(fromByteOffset: 8, as: UInt64.self).littleEndianValue,
            low: content.loadUnaligned(as: UInt64.self).littleEndianValue)
    }

    package var objectId: ObjectIdentifierBytes {
        ObjectIdentifierBytes(
            high: UInt64(bigEndian: content.loadUnaligned(as: UInt64.self)),
            low: UInt32(bigEndian: content.loadUnaligned(fromByteOffset: 8, as: UInt32.self)))
    }

    /// The UUID of binary data of subtype 4; nil for other data.
    package var uuid: UUIDBytes? {
        guard type == .binary, subtype == 4, content.count == 16 else { return nil }
        return UUIDBytes(
            high: UInt64(bigEndian: content.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: content.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }

    /// The text of a string, symbol or code.
    ///
    /// - Throws: `BSONError` if it is not well-formed UTF-8.
    package func text() throws(BSONError) -> String { try BSONElement.text(content, offset) }

    package func nameText() throws(BSONError) -> String { try BSONElement.text(name, max(0, offset - name.count - 1)) }

    fileprivate static func text(_ bytes: UnsafeRawBufferPointer, _ offset: Int) throws(BSONError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw BSONError(offset: offset, problem: "a text is not well-formed UTF-8")
        }
        return text
    }
}

extension BSONElement {
    /// The value as Extended JSON (v2, relaxed), as a tree. Integers and doubles remain apart.
    ///
    /// - Throws: `BSONError` for a defect inside, and for nesting beyond `BSONLimits.depth`.
    package func json(depth: Int = 0) throws(BSONError) -> JSON {
        switch type {
        case .double: .double(double)
        case .string: .string(try text())
        case .document: try BSON.json(content, at: offset, depth: depth + 1)
        case .array: .array(try BSON.members(content, at: offset, depth: depth + 1).map(\.value))
        case .binary: binaryJSON
        case .undefined: ["$undefined": true]
        case .objectId: ExtendedForm.objectId(objectId).json
        case .bool: .bool(bool)
        case .date: ExtendedForm.timestamp(Timestamp(milliseconds: int64)).json
        case .null: .null
        case .int32: .int(Int64(int32))
        case .int64: .int(int64)
        case .timestamp: ["$timestamp": ["t": .int(Int64(bits64 >> 32)), "i": .int(Int64(bits64 & 0xFFFF_FFFF))]]
        case .decimal128: ExtendedForm.decimal(decimal).json
        case .minKey: ["$minKey": 1]
        case .maxKey: ["$maxKey": 1]
        case .symbol: ["$symbol": .string(try text())]
        case .code: ["$code": .string(try text())]
        case .codeWithScope: try codeWithScope(depth)
        case .regularExpression: try regularExpression()
        case .dbPointer: try dbPointer()
        }
    }

    private var binaryJSON: JSON {
        if let uuid { return ExtendedForm.uuid(uuid).json }
        return ["$binary": ["base64": .string(Base64.encode(content)), "subType": .string(Hex.encode([subtype]))]]
    }

    private func regularExpression() throws(BSONError) -> JSON {
        let pattern = UnsafeRawBufferPointer(rebasing: content.prefix { $0 != 0 })
        let options = UnsafeRawBufferPointer(rebasing: content.dropFirst(pattern.count + 1).dropLast())
        return [
            "$regularExpression": [
                "pattern": .string(try BSONElement.text(pattern, offset)), "options": .string(try BSONElement.text(options, offset)),
            ]
        ]
    }

    private func dbPointer() throws(BSONError) -> JSON {
        let name = UnsafeRawBufferPointer(rebasing: content.dropFirst(4).dropLast(13))
        let id = ObjectIdentifierBytes(bytes: content.suffix(12))
        return ["$dbPointer": ["$ref": .string(try BSONElement.text(name, offset)), "$id": ExtendedForm.objectId(id).json]]
    }

    private func codeWithScope(_ depth: Int) throws(BSONError) -> JSON {
        let defect = BSONError(offset: offset, problem: "the code with scope is malformed")
        guard content.count >= 4 + 5 + BSONLimits.emptyDocumentBytes else { throw defect }
        let length = Int(content.loadUnaligned(fromByteOffset: 4, as: Int32.self).littleEndianValue)
        guard length >= 1, length <= content.count - 8 - BSONLimits.emptyDocumentBytes, content[8 + length - 1] == 0 else { throw defect }
        let code = UnsafeRawBufferPointer(rebasing: content[8..<8 + length - 1])
        let scope = UnsafeRawBufferPointer(rebasing: content[(8 + length)...])
        return [
            "$code": .string(try BSONElement.text(code, offset + 8)),
            "$scope": try BSON.json(scope, at: offset + 8 + length, depth: depth + 1),
        ]
    }
}

/// BSON 1.1 as trees. Reading only.
package enum BSON {
    /// Returns a document as Extended JSON (v2, relaxed).
    ///
    /// - Parameter bytes: The whole document, and nothing else.
    /// - Throws: `BSONError` for the first defect.
    package static func json(_ bytes: [UInt8]) throws(BSONError) -> JSON {
        try bytes.withUnsafeBytes { bytes in Result { () throws(BSONError) in try json(bytes) } }.get()
    }

    /// Does the same with bytes in place.
    package static func json(_ bytes: UnsafeRawBufferPointer, at base: Int = 0, depth: Int = 0) throws(BSONError) -> JSON {
        .object(try members(bytes, at: base, depth: depth))
    }

    fileprivate static func members(_ bytes: UnsafeRawBufferPointer, at base: Int, depth: Int) throws(BSONError) -> [JSON.Member] {
        guard depth < BSONLimits.depth else {
            throw BSONError(offset: base, problem: "the document is nested deeper than \(BSONLimits.depth) levels")
        }
        var cursor = try BSONCursor(bytes, at: base)
        var members: [JSON.Member] = []
        while let element = try cursor.next() {
            members.append(JSON.Member(try element.nameText(), try element.json(depth: depth)))
        }
        return members
    }
}
