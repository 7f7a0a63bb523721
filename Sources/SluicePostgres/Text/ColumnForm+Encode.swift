package import SluiceCore
import SluiceValues

extension ColumnForm {
    /// Returns the value as a statement's parameter.
    ///
    /// A value of another type than the property's becomes text that PostgreSQL rejects.
    package func parameter(_ value: Value) -> PostgresParameter {
        if code == .binary, case .binary(let bytes) = value { return .bytes(bytes) }
        return .optional(text(value))
    }

    /// Returns PostgreSQL's text form of a value, for parameters, literals and COPY; nil for NULL.
    package func text(_ value: Value) -> String? {
        if value.isNull { return nil }
        switch code {
        case .json: return ExtendedJSON.json(value).text
        case .array, .set:
            guard case .list(let elements) = value else { return Self.scalarText(value) }
            return Self.arrayText(elements.map(normalized))
        default: return Self.scalarText(normalized(value))
        }
    }

    /// Returns a text as the column returns it after a write; nil if the column cannot keep it.
    func normal(_ text: String) -> String? {
        switch element {
        case .character: TextBytes.withoutPadding(text)
        case .time: TextTime.normal(text)
        case .zonedTime: TextTime.zoned(text)
        case .interval: TextInterval.normal(text)
        default: text
        }
    }

    /// Returns a scalar with the text that the column returns. PostgreSQL rejects a text that the column cannot keep.
    private func normalized(_ value: Value) -> Value {
        guard element.changesTexts, case .string(let text) = value else { return value }
        return .string(normal(text) ?? text)
    }

    /// Returns the value as PostgreSQL returns it after a write: times cut to microseconds, decimals without exponents, durations in their
    /// normal form, sets in order.
    ///
    /// A value must pass through it before it is hashed or compared with rows from the database.
    package func stored(_ value: Value) -> Value {
        switch (code, value) {
        case (.array, .list(let elements)): return .list(elements.map(storedElement))
        case (.set, .list(let elements)): return Value.set(elements.map(storedElement))
        case (.json, _): return storedJSON(value)
        default: return storedElement(value)
        }
    }

    private func storedElement(_ value: Value) -> Value {
        switch (element, value) {
        case (.date, .timestamp(let time)): .timestamp(Timestamp(microseconds: TextTimestamp.midnight(time.microseconds)))
        case (_, .string): normalized(value)
        default: Self.storedScalar(value)
        }
    }

    private func storedJSON(_ value: Value) -> Value {
        // Converted to text and back, as by the database.
        guard let text = text(value) else { return value }
        var buffer = RowBuffer()
        var bytes = Array(text.utf8)
        let result: Value? = unsafe bytes.withUnsafeMutableBufferPointer { bytes in
            guard let cell = try? unsafe decode(UnsafeBufferPointer(bytes), into: &buffer) else { return nil }
            return unsafe buffer.withBase { cells, arena in
                unsafe RowView(cells: cells, count: 0, arena: arena).value(of: cell)
            }
        }
        return result ?? value
    }

    private static func storedScalar(_ value: Value) -> Value {
        switch value {
        case .timestamp(let time): return .timestamp(Timestamp(microseconds: time.microseconds))
        case .decimal(let number): return .decimal(storedDecimal(number))
        case .double(let number) where number.isNaN: return .double(.nan)
        case .float(let number) where number.isNaN: return .float(.nan)
        default: return value
        }
    }

    /// Returns a decimal as `numeric` stores it: with its digits and scale, without positive exponent or negative zero, and with
    /// one NaN.
    private static func storedDecimal(_ value: Decimal128) -> Decimal128 {
        if value.isNaN { return .nan }
        if value.isInfinite { return value.isNegative ? .negativeInfinity : .infinity }
        let (coefficient, exponent) = value.parts
        if exponent <= 0 { return coefficient == 0 ? Decimal128(high: value.high & ~(1 << 63), low: value.low) : value }
        let digits = coefficient == 0 ? "0" : String(coefficient) + String(repeating: "0", count: exponent)
        return Decimal128((value.isNegative && coefficient != 0 ? "-" : "") + digits) ?? value
    }

    private static func scalarText(_ value: Value) -> String {
        switch value {
        case .null: ""
        case .bool(let value): value ? "t" : "f"
        case .int(let value): String(value)
        case .float(let value): value.isFinite ? "\(value)" : special(Double(value))
        case .double(let value): value.isFinite ? "\(value)" : special(value)
        case .decimal(let value): value.description
        case .string(let value): value
        case .binary(let value): "\\x" + Hex.encode(value)
        case .timestamp(let value): TextTimestamp.text(value)
        case .objectId(let value): value.description
        case .uuid(let value): value.description
        case .list(let elements): arrayText(elements)
        case .dictionary, .link: ExtendedJSON.json(value).text
        }
    }

    private static func special(_ value: Double) -> String { value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity" }

    private static func arrayText(_ elements: [Value]) -> String {
        var text: [UInt8] = [UInt8(ascii: "{")]
        for (index, element) in elements.enumerated() {
            if index > 0 { text.append(UInt8(ascii: ",")) }
            if element.isNull {
                text.append(contentsOf: "NULL".utf8)
                continue
            }
            text.append(UInt8(ascii: "\""))
            for byte in scalarText(element).utf8 {
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { text.append(UInt8(ascii: "\\")) }
                text.append(byte)
            }
            text.append(UInt8(ascii: "\""))
        }
        text.append(UInt8(ascii: "}"))
        return String(decoding: text, as: UTF8.self)
    }
}
