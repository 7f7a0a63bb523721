import SluiceCore

/// The passwords that an app accepts.
package struct PasswordPolicy: Sendable {
    /// The range of the length, in characters.
    package var lengths: ClosedRange<Int>
    /// The passwords that are known to attackers; nil for none.
    package var refused: RefusedPasswords?

    package init(minimumLength: Int = PasswordHasher.lengths.lowerBound, refused: RefusedPasswords? = nil) {
        lengths = minimumLength...PasswordHasher.lengths.upperBound
        self.refused = refused
    }

    /// - Throws: `badRequest` with the reason against a new password.
    func check(_ password: String) throws(SluiceError) {
        guard lengths.contains(password.count) else {
            throw SluiceError(
                .badRequest, "password must be between \(lengths.lowerBound) and \(lengths.upperBound) characters",
                fix: "Choose another password.")
        }
        if refused?.contains(password) == true {
            throw SluiceError(.badRequest, "password is in a list of passwords that attackers know", fix: "Choose another password.")
        }
    }
}
