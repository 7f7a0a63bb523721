import SluiceCore
import SluicePorts
import SluiceValues

/// The settings of `local-userpass`: how addresses are confirmed, how passwords are reset, and which passwords are accepted.
package struct PasswordLogin: Hashable, Sendable {
    /// The way in which the e-mail address of a new user is confirmed.
    package enum Confirmation: Hashable, Sendable {
        /// By the registration itself.
        case automatic
        case mail
        /// By the app's function of this name.
        case function(String)
    }

    /// The way in which a user who has forgotten the password sets another one.
    package enum Reset: Hashable, Sendable {
        case mail
        case function(String)
    }

    package var confirmation = Confirmation.automatic
    package var reset = Reset.mail
    /// The app's own page that the link of a confirmation mail leads to; nil for the gateway's.
    package var confirmPage: String?
    package var resetPage: String?
    package var confirmSubject: String?
    package var resetSubject: String?
    /// `true` if only operators create accounts.
    package var isRegistrationClosed = false
    /// The minimum length of a password, in characters.
    package var minimumLength = PasswordHasher.lengths.lowerBound
    /// The path of a file with passwords that are refused.
    package var refusedPasswords: String?

    package init() {}

    /// `true` if the link of a mail leads to a page of the gateway.
    var needsPages: Bool { confirmation == .mail && confirmPage == nil || reset == .mail && resetPage == nil }

    /// The functions of the app that these settings need.
    var functions: [String] {
        var names: [String] = []
        if case .function(let name) = confirmation { names.append(name) }
        if case .function(let name) = reset { names.append(name) }
        return names
    }
}

/// Reads the settings of `local-userpass` of `auth/providers.json` and of `sluice.json`.
struct PasswordLoginReader {
    let list: ProblemList

    /// - Parameters:
    ///   - file: `auth/providers.json`.
    ///   - own: The section `providers` of `sluice.json`.
    ///   - hasMail: `true` if `sluice.json` names a mail server.
    func read(_ file: ConfigNode?, _ own: ConfigNode?, hasMail: Bool) -> PasswordLogin {
        var login = PasswordLogin()
        if let provider = file.flatMap(Self.provider), let config = provider.child("config"), config.json.members != nil {
            read(config, into: &login)
            let isEnabled = provider.child("disabled")?.json.bool != true
            if isEnabled, !hasMail { noteMail(config, login) }
        }
        if let own = own?.child("local-userpass") { readOwn(own, into: &login) }
        return login
    }

    private static func provider(in file: ConfigNode) -> ConfigNode? {
        let member = file.json.members?.first { ($0.value["type"]?.string ?? $0.key) == "local-userpass" }
        return member.flatMap { file.child($0.key) }
    }

    private func read(_ config: ConfigNode, into login: inout PasswordLogin) {
        let members = config.members(allowing: [
            "autoConfirm", "confirmEmailSubject", "confirmationFunctionName", "emailConfirmationUrl", "resetFunctionName",
            "resetPasswordSubject", "resetPasswordUrl", "runConfirmationFunction", "runResetFunction",
        ])
        if members["autoConfirm"]?.bool != true {
            let name = function("confirmationFunctionName", runBy: "runConfirmationFunction", members)
            login.confirmation = name.map { .function($0) } ?? .mail
        }
        login.reset = function("resetFunctionName", runBy: "runResetFunction", members).map { .function($0) } ?? .mail
        login.confirmPage = members["emailConfirmationUrl"].flatMap(page)
        login.resetPage = members["resetPasswordUrl"].flatMap(page)
        login.confirmSubject = members["confirmEmailSubject"].flatMap(subject)
        login.resetSubject = members["resetPasswordSubject"].flatMap(subject)
    }

    private func function(_ key: String, runBy flag: String, _ members: [String: ConfigNode]) -> String? {
        guard let flag = members[flag], flag.bool == true else { return nil }
        if let name = members[key]?.string, !name.isEmpty { return name }
        flag.note(.missing, "\(flag.name) is true and '\(key)' is missing: mails are sent instead.", fix: "Add \"\(key)\".")
        return nil
    }

    private func page(_ node: ConfigNode) -> String? {
        guard let url = node.string, !url.isEmpty else { return nil }
        if AccountLink.isPage(url) { return url }
        node.note(
            .unused, "\(node.name) is not a URL: links lead to the gateway's own page.",
            fix: "Write a URL such as https://example.com/confirm.")
        return nil
    }

    private func subject(_ node: ConfigNode) -> String? {
        guard let text = node.string, !text.isEmpty else { return nil }
        if Mail.isSubject(text) { return text }
        node.problem(
            "\(node.name) has \(text.count) characters, or a control character.",
            fix: "Write at most \(Limits.mailSubjectCharacters) characters in one line.")
        return nil
    }

    private func noteMail(_ config: ConfigNode, _ login: PasswordLogin) {
        let fix = #"Add to sluice.json: {"mail": {"url": "smtp://HOST:587", "user": "NAME", "password": "SECRET", "from": "ADDRESS"}}."#
        switch (login.confirmation, login.reset) {
        case (.mail, _):
            config.note(.missing, "No mails are sent: users of local-userpass are confirmed when they register.", fix: fix)
        case (_, .mail) where login.resetPage != nil:
            config.note(.missing, "No mails are sent: users of local-userpass cannot reset a password.", fix: fix)
        default: break
        }
    }

    private func readOwn(_ own: ConfigNode, into login: inout PasswordLogin) {
        let members = own.members(allowing: ["closed_registration", "minimum_password_length", "refused_passwords_file"])
        login.isRegistrationClosed = members["closed_registration"]?.bool ?? false
        login.refusedPasswords = members["refused_passwords_file"]?.string
        let range = Limits.minimumPasswordCharacters
        guard let node = members["minimum_password_length"], let count = node.int else { return }
        if range.contains(Int(count)) {
            login.minimumLength = Int(count)
        } else {
            node.problem("\(count) is out of range.", fix: "Give \(range.lowerBound) to \(range.upperBound).")
        }
    }
}
