import SluiceValues

/// Prints syntax trees. A tree has one text, which parses to the same tree. Persisted subscriptions have this text as a key, so it must not
/// change between releases.
struct CanonicalPrinter {
    private var text = ""

    static func print(_ tree: SyntaxTree) -> String {
        var printer = CanonicalPrinter()
        printer.query(tree.root)
        for suffix in tree.suffixes { printer.suffix(suffix) }
        return printer.text
    }

    static func print(_ root: SyntaxQuery) -> String { print(SyntaxTree(root: root, suffixes: [])) }

    static func print(_ operand: SyntaxOperand) -> String {
        var printer = CanonicalPrinter()
        printer.operand(operand, isPart: false)
        return printer.text
    }

    // MARK: Conditions

    private mutating func query(_ query: SyntaxQuery) {
        switch query.kind {
        case .constant(let value): text += value ? "TRUEPREDICATE" : "FALSEPREDICATE"
        case .and(let parts): joined(parts, " and ")
        case .or(let parts): joined(parts, " or ")
        case .not(let inner):
            text += "!("
            self.query(inner)
            text += ")"
        case .compare(let comparison):
            operand(comparison.left, isPart: false)
            text += " \(comparison.comparison.rawValue)\(comparison.foldsCase ? "[c]" : "") "
            operand(comparison.right, isPart: false)
        }
    }

    private mutating func joined(_ parts: [SyntaxQuery], _ separator: String) {
        for (index, part) in parts.enumerated() {
            if index > 0 { text += separator }
            switch part.kind {
            case .and, .or:
                text += "("
                query(part)
                text += ")"
            case .constant, .not, .compare: query(part)
            }
        }
    }

    // MARK: Operands

    private mutating func operand(_ operand: SyntaxOperand, isPart: Bool) {
        switch operand.kind {
        case .literal(let literal): text += literal.canonicalText
        case .argument(let number, let quantifier): text += CanonicalPrinter.prefix(quantifier) + "$\(number)"
        case .path(let path): self.path(path)
        case .list(let members, let quantifier):
            text += CanonicalPrinter.prefix(quantifier) + "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += ", " }
                self.operand(member, isPart: false)
            }
            text += "}"
        case .aggregate(let path, let aggregate, let property):
            self.path(path)
            text += ".\(aggregate.rawValue)" + (property.map { ".\(CanonicalPrinter.name($0.text))" } ?? "")
        case .arithmetic(let left, let arithmetic, let right):
            if isPart { text += "(" }
            self.operand(left, isPart: true)
            text += " \(arithmetic.rawValue) "
            self.operand(right, isPart: true)
            if isPart { text += ")" }
        case .subqueryCount(let path, let variable, let inner):
            text += "SUBQUERY("
            self.path(path)
            text += ", \(CanonicalPrinter.name(variable.text)), "
            query(inner)
            text += ").@count"
        case .object(let type, let key):
            // The parser removes one "class_".
            let hasPrefix = type.text.utf8.starts(with: "class_".utf8)
            text += "obj(\(Literal.string(hasPrefix ? "class_" + type.text : type.text).canonicalText), "
            self.operand(key, isPart: false)
            text += ")"
        case .shape(let shape): self.shape(shape)
        case .rowKey(let table, let row): text += table.map { "L\($0):\(row)" } ?? "O\(row)"
        }
    }

    private static func prefix(_ quantifier: Quantifier?) -> String { quantifier.map { "\($0.rawValue) " } ?? "" }

    private mutating func path(_ path: SyntaxPath) {
        text += CanonicalPrinter.prefix(path.quantifier)
        for (index, step) in path.steps.enumerated() {
            let dot = index > 0 ? "." : ""
            switch step.kind {
            case .name(let name): text += dot + CanonicalPrinter.name(name)
            case .argument(let number): text += "\(dot)$K\(number)"
            case .index(let index): text += "[\(index)]"
            case .first: text += "[FIRST]"
            case .last: text += "[LAST]"
            case .every: text += "[*]"
            case .key(let key): text += "[\(Literal.string(key).canonicalText)]"
            case .keyArgument(let number): text += "[$\(number)]"
            case .backlinks: text += dot + "@links"
            case .keys: text += dot + "@keys"
            case .values: text += dot + "@values"
            }
        }
        if let suffix = path.suffix { text += ".\(suffix.rawValue)" }
    }

    /// Returns a name with escaped blanks. A word that no property may have unquoted is between backquotes.
    static func name(_ name: String) -> String {
        if QueryName.needsQuotes(name) { return "`\(name)`" }
        guard name.utf8.contains(where: { $0 == 32 || $0 == 10 || $0 == 13 || $0 == 9 }) else { return name }
        var escaped: [UInt8] = []
        for byte in name.utf8 {
            switch byte {
            case 32: escaped += [UInt8(ascii: "\\"), 32]
            case 10: escaped += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
            case 13: escaped += [UInt8(ascii: "\\"), UInt8(ascii: "r")]
            case 9: escaped += [UInt8(ascii: "\\"), UInt8(ascii: "t")]
            default: escaped.append(byte)
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    // MARK: Shapes and suffixes

    private mutating func shape(_ shape: GeoShape) {
        switch shape {
        case .box(let low, let high): text += "geoBox(\(CanonicalPrinter.point(low)), \(CanonicalPrinter.point(high)))"
        case .circle(let center, let radians):
            text += "geoCircle(\(CanonicalPrinter.point(center)), \(CanonicalPrinter.coordinate(radians)))"
        case .polygon(let loops):
            let texts = loops.map { "{" + $0.map(CanonicalPrinter.point).joined(separator: ", ") + "}" }
            text += "geoPolygon(\(texts.joined(separator: ", ")))"
        }
    }

    private static func point(_ point: GeoPoint) -> String {
        let parts = [point.longitude, point.latitude] + (point.altitude.map { [$0] } ?? [])
        return "[" + parts.map(coordinate).joined(separator: ", ") + "]"
    }

    private static func coordinate(_ coordinate: GeoCoordinate) -> String {
        switch coordinate.kind {
        case .literal(let literal): literal.canonicalText
        case .argument(let number): "$\(number)"
        }
    }

    private mutating func suffix(_ suffix: QuerySuffix) {
        text += " \(suffix.keyword)("
        switch suffix.kind {
        case .limit(let count): text += "\(count)"
        case .distinct(let paths):
            for (index, path) in paths.enumerated() {
                if index > 0 { text += ", " }
                self.path(path)
            }
        case .sort(let keys):
            for (index, key) in keys.enumerated() {
                if index > 0 { text += ", " }
                path(key.path)
                text += key.ascending ? " ASC" : " DESC"
            }
        }
        text += ")"
    }
}

extension Literal {
    /// The literal in the form of the canonical text.
    var canonicalText: String {
        switch self {
        case .null: "NULL"
        case .bool(let value): value ? "true" : "false"
        case .int(let value): "\(value)"
        case .real(let digits): digits
        case .float(let digits): digits + "f"
        case .infinity(let negative): negative ? "-inf" : "inf"
        case .nan: "nan"
        case .string(let value): Literal.isPlain(value) ? "\"\(value)\"" : "B64\"\(Base64.encode(Array(value.utf8)))\""
        case .bytes(let value): "B64\"\(Base64.encode(value))\""
        case .binary(let value): "binary(B64\"\(Base64.encode(value))\")"
        case .timestamp(let value): "T\(value.seconds):\(value.nanoseconds)"
        case .objectId(let value): "oid(\(value))"
        case .uuid(let value): "uuid(\(value))"
        }
    }

    /// `true` if a string needs no encoding between quotes: it has no quotes, backslashes or control characters.
    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 32 && $0 != 127 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "'") && $0 != UInt8(ascii: "\\") }
    }
}
