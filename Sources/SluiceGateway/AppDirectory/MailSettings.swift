package import SluiceMail
import SluiceCore
import SluicePorts

/// The mail server of `sluice.json`, and the templates of the app directory.
package struct MailSettings: Hashable, Sendable {
    /// The server without the password, which is a secret.
    package var url: MailServerURL
    package var sender: MailServer.Sender
    package var user: String?
    /// The name of the secret with the password.
    package var passwordSecret: String?
    /// The path of a file with certificate authorities; nil for those of the system.
    package var authorities: String?
    package var allowsPlaintext: Bool
    package var confirmation = MailTemplates(text: .confirmation)
    package var reset = MailTemplates(text: .reset)

    /// Returns the server with its password.
    ///
    /// - Throws: `configMissing` or `configInvalid` if the secret cannot be read.
    func server(_ secrets: AppSecrets, in environment: ProcessEnvironment) throws(SluiceError) -> MailServer {
        var server = MailServer(url: url, sender: sender, authorities: authorities, allowsPlaintext: allowsPlaintext)
        if let user, let passwordSecret {
            server.credentials = .init(user: user, password: try secrets.text(of: passwordSecret, in: environment))
        }
        return server
    }
}

/// Reads `mail` of `sluice.json`.
struct MailReader {
    let list: ProblemList

    /// - Returns: nil without a section, or with a problem in it.
    func read(_ node: ConfigNode?, _ templates: MailTemplateReader, _ secrets: AppSecrets) -> MailSettings? {
        let confirmation = templates.read(.confirm, default: .confirmation)
        let reset = templates.read(.reset, default: .reset)
        guard let node else { return nil }
        let members = node.members(allowing: ["url", "user", "password", "from", "from_name", "ca_file", "allow_plaintext"])
        let url = members.required("url", of: node).flatMap { node in value(node) { text throws(SluiceError) in try MailServerURL(text) } }
        let sender = members.required("from", of: node).flatMap { node in value(node) { text throws(SluiceError) in try MailAddress(text) }
        }
        let name = members["from_name"].flatMap(senderName) ?? ""
        guard let url, let sender else { return nil }
        var settings = MailSettings(
            url: url, sender: .init(address: sender, name: name), authorities: members["ca_file"]?.string,
            allowsPlaintext: members["allow_plaintext"]?.bool ?? false)
        (settings.confirmation, settings.reset) = (confirmation, reset)
        readLogin(members, node, secrets, into: &settings)
        return settings
    }

    private func readLogin(
        _ members: [String: ConfigNode], _ node: ConfigNode, _ secrets: AppSecrets, into settings: inout MailSettings
    ) {
        guard let user = members["user"] else {
            members["password"]?.problem("'mail.password' has no 'mail.user' beside it.", fix: "Add \"user\".", code: .configMissing)
            return
        }
        guard let password = members.required("password", of: node), let secret = password.string else { return }
        guard secrets.has(secret) else {
            return password.problem(
                "There is no secret '\(secret)'.", fix: #"Name its place: {"secrets": {"\#(secret)": {"environment": "VARIABLE"}}}."#,
                code: .configMissing)
        }
        if settings.allowsPlaintext, !settings.url.isTLSFromStart {
            user.problem("'allow_plaintext' would send the password without TLS.", fix: "Remove 'user', or 'allow_plaintext'.")
        }
        (settings.user, settings.passwordSecret) = (user.string, secret)
    }

    private func senderName(_ node: ConfigNode) -> String? {
        guard let name = node.string else { return nil }
        if Mail.isSubject(name) { return name }
        node.problem("\(node.name) has a control character, or is too long.", fix: "Write a name in one line.")
        return nil
    }

    /// Returns the value of a text. An error of it is a problem.
    private func value<Value>(_ node: ConfigNode, _ read: (String) throws(SluiceError) -> Value) -> Value? {
        guard let text = node.string else { return nil }
        do throws(SluiceError) {
            return try read(text)
        } catch {
            node.problem(error.message, fix: error.fix)
            return nil
        }
    }
}
