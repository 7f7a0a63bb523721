package import SluicePorts

/// The mails with links that the gateway sends to users.
package struct AccountMail: Sendable {
    /// One kind of mail.
    package struct Form: Hashable, Sendable {
        package var subject: String
        package var templates: MailTemplates
        /// The URL of the page that the link leads to.
        package var page: String

        package init(subject: String, templates: MailTemplates, page: String) {
            self.subject = subject
            self.templates = templates
            self.page = page
        }
    }

    private let mailer: any Mailer
    /// The name of the app.
    private let app: String
    private let confirmation: Form
    private let reset: Form

    package init(mailer: any Mailer, app: String, confirmation: Form, reset: Form) {
        self.mailer = mailer
        self.app = app
        self.confirmation = confirmation
        self.reset = reset
    }

    func sendConfirmation(to email: String, _ link: AccountLink) { send(confirmation, to: email, link) }
    func sendReset(to email: String, _ link: AccountLink) { send(reset, to: email, link) }

    private func send(_ form: Form, to email: String, _ link: AccountLink) {
        let values: [MailTemplate.Value: String] = [.link: link.url(form.page), .app: app, .email: email]
        let (text, html) = (form.templates.text.text(values), form.templates.html?.html(values))
        // The name of an account may be no mailbox. An error would tell a stranger that there is such an account.
        guard let address = try? MailAddress(email), let mail = try? Mail(to: address, subject: form.subject, text: text, html: html) else {
            return
        }
        mailer.send(mail)
    }
}
