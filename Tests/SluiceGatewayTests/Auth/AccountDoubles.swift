import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluicePorts
import SluiceValues
import Synchronization

/// Pending users in memory, with the promises of the port.
final class MemoryPendingUsers: PendingUserDirectory {
    private struct Confirmation {
        var token: LinkToken
        var user: String
        var password: String?
    }

    private struct State {
        var users: [String: PendingUser] = [:]
        var confirmations: [String: Confirmation] = [:]

        mutating func add(_ token: LinkToken, of user: PendingUser) {
            confirmations[token.id] = Confirmation(token: token, user: user.id, password: user.passwordHash)
        }

        mutating func remove(_ id: String) {
            users[id] = nil
            confirmations = confirmations.filter { $0.value.user != id }
        }
    }

    private let accounts: MemoryDirectory
    private let state = Mutex(State())

    init(_ accounts: MemoryDirectory) { self.accounts = accounts }

    /// Lets go of users who have accounts, as the trigger of the schema does.
    private func settle() async throws {
        for user in state.withLock({ Array($0.users.values) }) where try await accounts.find(email: user.email) != nil {
            state.withLock { $0.remove(user.id) }
        }
    }

    func add(_ user: PendingUser, _ token: LinkToken) async throws -> PendingUser {
        if try await accounts.find(email: user.email) != nil { throw SluiceError(.nameInUse, "name already in use: \(user.email)") }
        return state.withLock { state in
            var added = user
            state.users[added.id] = added
            if let known = state.users.values.first(where: { $0.email == user.email && $0.id != user.id }) {
                state.users[added.id] = nil
                added.id = known.id
                state.users[added.id] = added
                state.users[added.id]?.passwordHash = nil
            }
            state.add(token, of: added)
            return added
        }
    }

    func add(_ token: LinkToken, email: String, expires: Int64) async throws -> PendingUser? {
        try await settle()
        return state.withLock { state in
            guard var user = state.users.values.first(where: { $0.email == email }) else { return nil }
            user.expires = expires
            state.users[user.id] = user
            state.add(token, of: user)
            return user
        }
    }

    func add(_ token: LinkToken, pendingID id: String, expires: Int64) async throws -> PendingUser? {
        guard let user = try await find(pendingID: id) else { return nil }
        return try await add(token, email: user.email, expires: expires)
    }

    func find(pendingEmail email: String) async throws -> PendingUser? {
        try await settle()
        return state.withLock { $0.users.values.first { $0.email == email } }
    }

    func find(pendingID id: String) async throws -> PendingUser? {
        try await settle()
        return state.withLock { $0.users[id] }
    }

    func listPending(after id: String, limit: Int) async throws -> [PendingUser] {
        try await settle()
        return state.withLock { $0.users.values.filter { $0.id > id }.sorted { $0.id < $1.id }.prefix(limit).map(\.self) }
    }

    func pendingUser(token id: String, hash: [UInt8], now: Int64) async throws -> PendingUser? {
        try await settle()
        return state.withLock { state in
            guard let found = state.confirmations[id], found.token.hash == hash, found.token.expires > now,
                var user = state.users[found.user]
            else { return nil }
            user.passwordHash = found.password
            return user
        }
    }

    func confirm(_ account: UserAccount, token: String?) async throws -> Bool {
        let isFound = state.withLock { state in
            guard state.users[account.id] != nil else { return false }
            if let token, state.confirmations[token]?.user != account.id { return false }
            state.remove(account.id)
            return true
        }
        if isFound { try await accounts.create(account) }
        return isFound
    }

    func remove(token id: String) async throws {
        state.withLock { state in
            guard let user = state.confirmations.removeValue(forKey: id)?.user else { return }
            if !state.confirmations.values.contains(where: { $0.user == user }) { state.users[user] = nil }
        }
    }

    func delete(pendingID id: String) async throws {
        guard try await find(pendingID: id) != nil else { throw SluiceError(.userNotFound, "Pending user \(id) does not exist.") }
        state.withLock { $0.remove(id) }
    }
}

/// Keeps the mails that it is given.
final class MemoryMailer: Mailer {
    private let kept = Shared<[Mail]>([])

    var mails: [Mail] { kept.current }

    func send(_ mail: Mail) { kept.append(mail) }

    /// The mails of an app without pages of its own.
    var mail: AccountMail {
        func form(_ subject: String, _ page: String) -> AccountMail.Form {
            .init(
                subject: subject, templates: .init(text: MailTemplate("{{app}} {{email}}\n{{link}}\n")),
                page: "https://shop.example.com/\(page)")
        }
        return AccountMail(mailer: self, app: "The Shop", confirmation: form("confirm", "confirm"), reset: form("reset", "reset"))
    }

    /// The token of a mail's link.
    func link(_ index: Int) throws -> (token: String, id: String) { try Self.link(mails[index].text) }

    static func link(_ text: String) throws -> (token: String, id: String) {
        let line = text.split(separator: "\n").first { $0.contains("?token=") } ?? ""
        let parts = line.split { "?&=".contains($0) }
        guard parts.count == 5 else { throw SluiceError(.badRequest, "There is no link in: \(text)") }
        return (String(parts[2]), String(parts[4]))
    }
}

/// A function that decides by the name of the user.
final class DecidingFunctions: AppFunctions {
    private let asked = Shared<[FunctionCall]>([])
    private let decide: @Sendable (FunctionCall) throws(SluiceError) -> JSON

    init(_ decide: @escaping @Sendable (FunctionCall) throws(SluiceError) -> JSON) { self.decide = decide }

    var calls: [FunctionCall] { asked.current }

    func canCall(_ name: String) -> Bool { true }

    func call(_ call: FunctionCall) async throws(SluiceError) -> JSON {
        asked.append(call)
        return try decide(call)
    }
}
