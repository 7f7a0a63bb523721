import SluiceCore
import SluiceGateway
import SluicePorts
import SluicePostgres
import SluiceValues

/// The initial users. Their passwords are created once and stored in the private database.
enum DevelopmentUsers {
    static let emails = ["alice@example.com", "bob@example.com"]

    struct User {
        var id: String
        var email: String
        var password: String
        var token: String
    }

    static func prepare(_ conninfo: String, app: AppConfiguration) async throws -> [User] {
        let pool = PostgresPool(conninfo, name: "development", size: 1)
        let users: Result<[User], any Error>
        do { users = .success(try await prepare(pool, app)) } catch { users = .failure(error) }
        await pool.close()
        return try users.get()
    }

    private static func prepare(_ pool: PostgresPool, _ app: AppConfiguration) async throws -> [User] {
        let access = try await GatewayAccess.open(
            pool: pool, app: app, isDevelopment: true, passwordCost: .stored, environment: SystemEnvironment(),
            logger: ProcessLogger.make())
        var users: [User] = []
        for email in emails {
            let name = "development:\(email)"
            let secret = Hex.encode((0..<6).map { _ in UInt8.random(in: .min ... .max) })
            // The first proposal is stored; later starts get the same password.
            let password = String(
                decoding: try await SigningKeyStore(pool: pool).signingKey(name, proposed: Array(secret.utf8)), as: UTF8.self)
            let known = try await access.users.directory.find(email: email)?.id
            let id = if let known { known } else { try await access.users.create(email: email, password: password).id }
            let login = try await access.users.login(email: email, password: password, from: "development")
            users.append(User(id: id, email: email, password: password, token: login.accessToken))
        }
        return users
    }
}
