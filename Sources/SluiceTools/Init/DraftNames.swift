import SluiceCore
import SluiceGateway

/// The names that `sluice init` gives to classes and properties.
enum DraftNames {
    // MARK: Classes

    /// Returns a class name for each table, unique over all schemas.
    ///
    /// A table with a file keeps the name there, and no other table gets a name of a file. Then tables of the schema `public` choose. Of
    /// other tables with the same name, the later ones have their schema before it.
    static func classes(of tables: [AppDraft.Place], _ known: KnownClasses) -> [String] {
        var names = [String](repeating: "", count: tables.count)
        var kept: Set<String> = []
        for index in tables.indices {
            // Of two files with one name, which no gateway accepts, the first counts.
            if let name = known.names[tables[index]], kept.insert(name).inserted { names[index] = name }
        }
        var taken = known.taken.union(kept)
        let free = tables.indices.filter { names[$0].isEmpty }
        for index in free.filter({ tables[$0].schema == "public" }) + free.filter({ tables[$0].schema != "public" }) {
            let (schema, table) = (tables[index].schema, tables[index].table)
            let plain = singular(pascal(table))
            let candidates = schema == "public" ? [plain] : [plain, pascal(schema) + plain]
            let free = candidates.map { prefix($0, Limits.classNameBytes) }.first { !taken.contains($0) }
            names[index] = free ?? numbered(candidates.last ?? plain, Limits.classNameBytes) { !taken.contains($0) }
            taken.insert(names[index])
        }
        return names
    }

    /// Names of Swift's and Realm's types, which a class of an app cannot have without trouble.
    private static let reservedClasses: Set<String> = [
        "Any", "Array", "Bool", "Data", "Date", "Decimal128", "Dictionary", "Double", "Error", "Float", "Int", "List", "Map", "Object",
        "ObjectId", "Optional", "Protocol", "Realm", "Result", "Self", "Set", "String", "Type", "UUID",
    ]

    /// Returns a name like `OrderLines` for `order_lines`.
    private static func pascal(_ name: String) -> String {
        let words = allowed(name).split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }
        let joined = words.joined()
        return SchemaName.isAllowed(joined) ? joined : "Table" + joined
    }

    /// Returns the singular of an English plural whose ending leaves no doubt, and any other name unchanged.
    private static func singular(_ name: String) -> String {
        let lower = name.lowercased()
        var result = name
        if lower.count > 3, !doubtfulEndings.contains(where: lower.hasSuffix) {
            if lower.hasSuffix("ies") {
                result = name.dropLast(3) + "y"
            } else if ["sses", "shes", "xes", "tches"].contains(where: lower.hasSuffix) {
                result = String(name.dropLast(2))
            } else if lower.hasSuffix("s") {
                result = String(name.dropLast())
            }
        }
        return reservedClasses.contains(result) ? result + "Row" : result
    }

    private static let doubtfulEndings = [
        "ss", "us", "is", "as", "os", "news", "series", "species", "movies", "cookies", "uses", "oes", "zes", "aches",
    ]

    // MARK: Properties

    /// Returns a property name for each column. The key is `_id`. A name stays if it is an identifier and no word of the query language.
    static func properties(of columns: [String], key: String) -> [String] {
        var taken: Set<String> = ["_id"]
        // Names that stay come first, so that no other column gets them.
        for column in columns where column != key && stays(column) { taken.insert(column) }
        return columns.map { column in
            if column == key { return "_id" }
            if stays(column) { return column }
            let name = identifier(column)
            let free = taken.contains(name) ? numbered(name, Limits.propertyNameBytes) { !taken.contains($0) } : name
            taken.insert(free)
            return free
        }
    }

    private static func stays(_ column: String) -> Bool {
        column != "_id" && SchemaName.isAllowed(column) && !QueryableFields.isReserved(column)
    }

    /// Returns an identifier for a column whose name is none: `order_date` for `order date`.
    private static func identifier(_ column: String) -> String {
        if column == "_id" { return "id_" }
        let words = allowed(column).split(separator: "_")
        let joined = words.isEmpty ? "column" : words.joined(separator: "_")
        let name = SchemaName.isAllowed(joined) ? joined : "_" + joined
        return prefix(QueryableFields.isReserved(name) ? name + "_" : name, Limits.propertyNameBytes)
    }

    // MARK: Letters

    /// Returns the name in normal form C, with `_` in place of each character that no identifier has.
    private static func allowed(_ name: String) -> String {
        String(SchemaName.normalFormC(name).map { SchemaName.isAllowed("_\($0)") ? $0 : "_" })
    }

    private static func numbered(_ name: String, _ bytes: Int, isFree: (String) -> Bool) -> String {
        for number in 2... {
            let text = "\(number)"
            let candidate = prefix(name, bytes - text.utf8.count) + text
            if isFree(candidate) { return candidate }
        }
        return name
    }

    /// Returns the longest beginning of whole characters that has at most so many bytes.
    private static func prefix(_ name: String, _ bytes: Int) -> String {
        var (result, count) = ("", 0)
        for character in name {
            count += character.utf8.count
            if count > bytes { break }
            result.append(character)
        }
        return result
    }
}
