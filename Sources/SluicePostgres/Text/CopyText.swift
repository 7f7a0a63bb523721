package import SluiceCore
import SluiceValues

/// Rows in the text format of COPY.
package enum CopyText {
    /// Appends one row; nil becomes NULL.
    package static func append(_ values: some Sequence<String?>, to bytes: inout [UInt8]) {
        var isFirst = true
        for value in values {
            if !isFirst { bytes.append(UInt8(ascii: "\t")) }
            isFirst = false
            append(value, to: &bytes)
        }
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Appends a flat row of the forms' properties, without generated columns. An absent value, or a collection that is null, becomes the
    /// property's empty value.
    package static func append(_ row: RowView, _ forms: [ColumnForm], to bytes: inout [UInt8]) {
        var isFirst = true
        for (index, form) in forms.enumerated() where !form.isGenerated {
            if !isFirst { bytes.append(UInt8(ascii: "\t")) }
            isFirst = false
            let cell = row[index]
            if !append(cell, of: row, form, to: &bytes) { append(form.written(row.value(of: cell)), to: &bytes) }
        }
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Appends the commonest kinds of scalars without creating a text.
    ///
    /// - Returns: `false`, with nothing appended, for other values.
    private static func append(_ cell: Cell, of row: RowView, _ form: ColumnForm, to bytes: inout [UInt8]) -> Bool {
        // Arrays and JSON need their text form, and other texts their normal form.
        guard form.code == form.element, form.property.collection == .none, form.code != .json, !form.code.changesTexts else {
            return false
        }
        switch cell.tag {
        case .null: bytes.append(contentsOf: "\\N".utf8)
        case .bool: bytes.append(UInt8(ascii: cell.bits != 0 ? "t" : "f"))
        case .int: bytes.append(contentsOf: String(Int64(bitPattern: cell.bits)).utf8)
        case .string: unsafe escape(row.bytes(of: cell), to: &bytes)
        case .timestamp:
            TextTimestamp.append(
                Timestamp(seconds: Int64(bitPattern: cell.bits), nanoseconds: Int32(bitPattern: cell.length)), to: &bytes)
        case .double:
            let value = Double(bitPattern: cell.bits)
            guard value.isFinite else { return false }
            bytes.append(contentsOf: "\(value)".utf8)
        case .objectId:
            hex(cell.bits, 16, to: &bytes)
            hex(UInt64(cell.length), 8, to: &bytes)
        case .uuid: unsafe uuid(row.bytes(of: cell), to: &bytes)
        case .binary: unsafe binary(row.bytes(of: cell), to: &bytes)
        default: return false
        }
        return true
    }

    /// Appends the 8-4-4-4-12 form.
    private static func uuid(_ content: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]) {
        for index in content.indices {
            if index == 4 || index == 6 || index == 8 || index == 10 { bytes.append(UInt8(ascii: "-")) }
            hex(unsafe UInt64(content[index]), 2, to: &bytes)
        }
    }

    /// Appends `\x` and hexadecimal digits. The backslash is escaped, as COPY reads it first.
    private static func binary(_ content: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "\\\\x".utf8)
        for index in content.indices { hex(unsafe UInt64(content[index]), 2, to: &bytes) }
    }

    /// Appends the last digits of a number in hexadecimal.
    @inline(__always)
    private static func hex(_ value: UInt64, _ digits: Int, to bytes: inout [UInt8]) {
        for place in stride(from: 4 * (digits - 1), through: 0, by: -4) {
            let nibble = UInt8(truncatingIfNeeded: value >> UInt64(place)) & 15
            bytes.append(nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") - 10 + nibble)
        }
    }

    private static func append(_ value: String?, to bytes: inout [UInt8]) {
        guard var value else { return bytes.append(contentsOf: "\\N".utf8) }
        value.withUTF8 { unsafe escape($0, to: &bytes) }
    }

    /// Appends a text with its special characters escaped. Most texts have none and are copied whole.
    private static func escape(_ text: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]) {
        guard unsafe text.contains(where: isSpecial) else { return unsafe bytes.append(contentsOf: text) }
        for index in text.indices {
            let byte = unsafe text[index]
            switch byte {
            case UInt8(ascii: "\\"): bytes.append(contentsOf: "\\\\".utf8)
            case UInt8(ascii: "\n"): bytes.append(contentsOf: "\\n".utf8)
            case UInt8(ascii: "\r"): bytes.append(contentsOf: "\\r".utf8)
            case UInt8(ascii: "\t"): bytes.append(contentsOf: "\\t".utf8)
            default: bytes.append(byte)
            }
        }
    }

    private static func isSpecial(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\t")
    }
}

extension ColumnForm {
    /// Returns the text of a row's value as it is written; nil for NULL. An absent value, or a collection that is null, becomes the
    /// property's empty value.
    func written(_ value: Value?) -> String? {
        let value = value ?? property.emptyValue
        return text(property.collection != .none && value.isNull ? property.emptyValue : value)
    }
}
