@_spi(_Unicode) import Swift

/// An e-mail address in the one form in which addresses are stored and looked up.
///
/// The normal form is Unicode's normal form C in lower case. Each scalar maps by its own `Lowercase_Mapping`, independent of language and
/// neighbours. Addresses that differ only in case, or in the code points of a letter, have the same form. A unique index over bytes
/// therefore rejects the second. Similar letters of other scripts remain different.
package struct EmailAddress: Hashable, Sendable {
    /// The normal form.
    package let text: String

    /// - Throws: `invalidEmail` for an empty address, one over `Limits.emailBytes`, and one with blanks, control characters or invisible
    ///   characters.
    package init(_ written: String) throws(SluiceError) {
        guard !written.isEmpty, written.utf8.count <= Limits.emailBytes else {
            throw SluiceError(.invalidEmail, "The e-mail has \(written.utf8.count) bytes.")
        }
        if let scalar = written.unicodeScalars.first(where: Self.isRefused) {
            throw SluiceError(.invalidEmail, "The e-mail contains U+\(Self.number(scalar)), which is not allowed in an address.")
        }
        text = Self.composed(Self.composed(written).unicodeScalars.map(\.properties.lowercaseMapping).joined())
        guard text.utf8.count <= Limits.emailBytes else {
            throw SluiceError(.invalidEmail, "The e-mail has \(text.utf8.count) bytes in its normal form.")
        }
    }

    private static func composed(_ text: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in text._nfc { scalars.append(scalar) }
        return String(scalars)
    }

    private static func isRefused(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .spaceSeparator, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: true
        default: scalar.properties.isWhitespace
        }
    }

    private static func number(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
