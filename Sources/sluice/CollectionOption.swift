import ArgumentParser
import SluiceTools

/// Options that give something to a collection, `db.coll=…`.
enum CollectionOption {
    /// - Parameter name: The option, for messages.
    /// - Throws: `ValidationError` for a text of another form.
    static func pairs(_ texts: [String], _ name: String) throws -> [(collection: String, value: String)] {
        try texts.map { text in
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2, CollectionName(parts[0]) != nil else { throw ValidationError("\(name) is db.coll=…, not '\(text)'.") }
            return (parts[0], parts[1])
        }
    }
}
