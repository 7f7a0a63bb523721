/// A part of an app directory with another effect than its author may expect, or with none.
package struct ConfigNote: Hashable, Sendable, CustomStringConvertible {
    /// The effect.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The gateway ignores the part.
        case unused
        /// The gateway reads an older form as the newer one.
        case adapted
        /// The gateway does not synchronise the collection, as App Services did not.
        case omitted
        /// The app needs an addition.
        case missing
    }

    package var kind: Kind
    /// The path in the directory. A folder ends with a slash.
    package var file: String
    /// The line, from 1; 0 for a note about the whole file.
    package var line = 0
    package var column = 0
    /// The class, or the class and its property as `Item.place`; nil for a setting.
    package var subject: String?
    package var message: String
    /// The text to add, or another fix; empty if none is needed.
    package var fix = ""

    package var place: String { line == 0 ? file : "\(file):\(line):\(column)" }

    package var description: String {
        let text = fix.isEmpty ? message : "\(message) \(fix)"
        return line == 0 && message.hasPrefix(file) ? text : "\(place): \(text)"
    }
}
