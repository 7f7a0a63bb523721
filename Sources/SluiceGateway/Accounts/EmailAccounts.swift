package import SluiceIdentity
package import SluicePorts

/// The parts of `local-userpass` beside the login: registration, confirmation and new passwords.
package struct EmailAccounts: Sendable {
    package let registrations: Registrations
    package let recovery: PasswordRecovery
    package let resets: PasswordResets

    /// - Parameters:
    ///   - mail: nil if the app has no mail server. Where a mail would confirm, the registration does.
    package init(
        _ settings: PasswordLogin, users: UserService, pending: any PendingUserDirectory, resets directory: any PasswordResetDirectory,
        mail: AccountMail?, functions: any AppFunctions
    ) {
        let throttle = MailThrottle(exemptsLoopback: users.exemptsLoopback, environment: users.environment)
        let confirmation: Registrations.Confirmation =
            switch settings.confirmation {
            case .automatic: .automatic
            case .mail: mail.map { .mail($0) } ?? .automatic
            case .function(let name): .function(AccountFunction(name, of: functions))
            }
        let way: PasswordRecovery.Way =
            switch settings.reset {
            case .mail: mail.map { .mail($0) } ?? .none
            case .function(let name): .function(AccountFunction(name, of: functions))
            }
        registrations = Registrations(
            users: users, pending: pending, confirmation: confirmation, isClosed: settings.isRegistrationClosed, throttle: throttle)
        recovery = PasswordRecovery(users: users, directory: directory, way: way, throttle: throttle)
        resets = PasswordResets(directory: directory, users: users)
    }
}
