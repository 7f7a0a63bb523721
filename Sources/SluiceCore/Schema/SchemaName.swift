@_spi(_Unicode) import Swift

/// Rules for the names of classes and properties that a client may create in development mode.
///
/// The allow-list permits names that need no quoting in Swift, Kotlin, C# or JavaScript. These have letters of any script, digits,
/// combining marks of a letter, and `_`. The first character is a letter or `_`. The lengths are Realm's: 57 bytes for a class, 63 for a
/// property. Names must be in normal form C, so that equal-looking names have equal bytes.
package enum SchemaName {
    /// - Parameter known: The present schema. The operator chose its names, so they are not checked.
    /// - Throws: `invalidName` for the first new class or property whose name is not allowed.
    package static func check(_ types: [ObjectType], beyond known: Schema) throws(SluiceError) {
        for type in types {
            let before = known[type.name]
            if before == nil { try check(type.name, "class", most: Limits.classNameBytes) }
            for property in type.properties where before?[property.name] == nil {
                try check(property.name, "property", most: Limits.propertyNameBytes)
            }
        }
    }

    private static func check(_ name: String, _ kind: String, most: Int) throws(SluiceError) {
        guard name.utf8.count <= most else {
            throw SluiceError(.invalidName, "The \(kind) name \(shown(name)) has \(name.utf8.count) bytes.", fix: "Use 1 to \(most).")
        }
        guard isAllowed(name) else {
            throw SluiceError(.invalidName, "The \(kind) name \(shown(name)) is not allowed.")
        }
    }

    /// `true` if the name is a letter or `_`, then letters, digits, marks and `_`, in normal form C.
    package static func isAllowed(_ name: String) -> Bool {
        guard let first = name.unicodeScalars.first, isLetter(first) else { return false }
        var mayTakeMark = false
        for scalar in name.unicodeScalars {
            // Variation selectors are marks and fillers are letters, but both are invisible.
            guard !scalar.properties.isDefaultIgnorableCodePoint else { return false }
            if isLetter(scalar) {
                mayTakeMark = scalar != "_"
            } else if isMark(scalar) {
                guard mayTakeMark else { return false }
            } else if scalar.properties.generalCategory == .decimalNumber {
                mayTakeMark = false
            } else {
                return false
            }
        }
        return name.unicodeScalars.elementsEqual(name._nfc)
    }

    /// Returns the name in Unicode's normal form C.
    package static func normalFormC(_ name: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in name._nfc { scalars.append(scalar) }
        return String(scalars)
    }

    private static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter: true
        default: scalar == "_"
        }
    }

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark: true
        default: false
        }
    }

    /// The first 64 scalars of a name, with everything except printable ASCII as `\u{…}`.
    private static func shown(_ name: String) -> String {
        "'\(name.unicodeScalars.prefix(64).map { $0.escaped(asASCII: true) }.joined())'"
    }
}
