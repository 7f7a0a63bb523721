import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceSDK
import SluiceTools
import TestSupport
import Testing

/// Which fields subscriptions may name, and when that changes.
@Suite(.timeLimit(.minutes(5))) struct `Queryable fields` {
    private static let roles = ["Note": "[\(NoteApp.role("everybody"))]"]
    private static let rows = """
        INSERT INTO "Note" (_id, owner_id, team, text) VALUES ('1', 'x', 'red', 't'), ('2', 'x', 'red', 'u'), ('3', 'x', 'blue', 't')
        """

    @Test func `Scenario 2: in development a field becomes queryable when a subscription names it, and else it does not`() async throws {
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            for isDevelopment in [true, false] {
                try await deployment.run(NoteApp.files(Self.roles), isDevelopment: isDevelopment) { gateway in
                    if isDevelopment { try await gateway.sql(Self.rows) }
                    let session = try await gateway.openSession(["Note"])
                    try await session.sendSubscribe(1, [("Note", "text == 't'")])
                    try await session.receive { $0.completed == 1 || !$0.queryErrors.isEmpty }
                    #expect(session.queryErrors.map(\.error.code) == (isDevelopment ? [] : [.queryNotQueryable]))
                    #expect(session.keys("Note") == (isDevelopment ? ["1", "3"] : []))
                    session.close()
                }
            }
        }
    }

    /// What an operator is told would become of a subscription, which makes no field queryable: nil when it is taken.
    private static func refusal(_ gateway: RunningGateway, of type: String) async throws -> Int? {
        let user = try await gateway.account().id
        let query = "text%20%3D%3D%20%27t%27"
        return try await gateway.request("GET", "/admin/v1/explain?user=\(user)&type=\(type)&query=\(query)", admin: true).code
    }

    @Test func `Scenario 2: the field is one of that class alone, also when the device comes back after a restart`() async throws {
        let files = NoteApp.files(["Note": "[\(NoteApp.role("everybody"))]", "Memo": "[\(NoteApp.role("everybody"))]"])
        let no = Int(ErrorCode.queryNotQueryable.rawValue)
        try await RunningGateway.deploy(NoteApp.tables(["Note", "Memo"])) { deployment in
            var device: (token: String, file: TestSession.File)?
            for run in 0..<2 {
                let last = device
                device = try await deployment.run(files, isDevelopment: true) { gateway in
                    try await gateway.sql(run == 0 ? Self.rows : #"UPDATE "Note" SET text = 't' WHERE _id = '2'"#)
                    let token = if let last { last.token } else { try await gateway.anonymousToken() }
                    let session = try await gateway.session(token: token)
                    if let last { session.goOn(from: last.file) }
                    try await session.hello(["Note", "Memo"])
                    #expect(try await Self.refusal(gateway, of: "Memo") == no)
                    try await session.subscribe(1, [("Note", "text == 't'"), ("Memo", "team == 'red'")])
                    #expect(session.keys("Note") == (run == 0 ? ["1", "3"] : ["1", "2", "3"]) && session.error == nil)
                    #expect(try await Self.refusal(gateway, of: "Note") == nil)
                    #expect(try await Self.refusal(gateway, of: "Memo") == no, "a field of one class is none of another's")
                    session.close()
                    return (token, session.file)
                }
            }
        }
    }

    @Test func `Scenario 2: roles may name the field as well from then on`() async throws {
        let files = NoteApp.files(["Note": "[\(NoteApp.role("readers", read: #"{ "text": "t" }"#, write: "false"))]"])
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            try await deployment.run(files, isDevelopment: true) { gateway in
                try await gateway.sql(Self.rows)
                let (before, session) = (try await gateway.openSession(["Note"]), try await gateway.openSession(["Note"]))
                try await before.subscribe(1, [("Note", "team == 'red'")])
                #expect(before.keys("Note").isEmpty)
                try await session.subscribe(1, [("Note", "text != 'z'")])
                #expect(session.keys("Note") == ["1", "3"])
                try await before.subscribe(2, [("Note", "team == 'blue' OR _id == '1'")])
                #expect(before.keys("Note") == ["1", "3"])
                for session in [before, session] { session.close() }
            }
        }
    }

    @Test func `Scenario 3: of a class that an app brings and that has no roles the log says that nobody may see it`() async throws {
        let files = NoteApp.files(Self.roles)
        let key = Property(id: 1, name: "_id", type: .string)
        let log = LinesOfLog()
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            try await deployment.run(files, isDevelopment: true, logger: Logging.Logger(label: "test") { _ in log }) { gateway in
                let session = try await gateway.session(token: try await gateway.anonymousToken())
                try await session.hello(Schema([ObjectType(name: "Memo", properties: [key])]))
                await log.wait(for: "A plugin warns about the app.", about: "Memo has no schema.json under data_sources: access is denied")
                try await gateway.sql(#"INSERT INTO "Memo" (_id) VALUES ('theirs')"#)
                try await session.subscribe(1, [("Memo", "TRUEPREDICATE")])
                #expect(session.keys("Memo").isEmpty && session.error == nil)
                session.close()
            }
        }
    }

    @Test func `a field that the app directory names for one class is queryable of that class alone`() async throws {
        var files = NoteApp.files(["Note": "[\(NoteApp.role("everybody"))]", "Memo": "[\(NoteApp.role("everybody"))]"])
        files["sync/config.json"] = files["sync/config.json"]?.replacing(
            #""queryable_fields_names":"#, with: #""collection_queryable_fields_names": { "Note": ["text"] }, "queryable_fields_names":"#)
        let named = files
        try await RunningGateway.deploy(NoteApp.tables(["Note", "Memo"])) { deployment in
            try await deployment.run(named) { gateway in
                try await gateway.sql(Self.rows)
                let session = try await gateway.openSession(["Note", "Memo"])
                try await session.subscribe(1, [("Note", "text == 't'")])
                #expect(session.keys("Note") == ["1", "3"])
                try await session.sendSubscribe(2, [("Note", "text == 't'"), ("Memo", "text == 't'")])
                try await session.receive { !$0.queryErrors.isEmpty }
                let error = try #require(session.queryErrors.first)
                #expect(error.version == 2 && error.error.code == .queryNotQueryable && error.index == 1, "\(error)")
                #expect(error.error.message.contains("table \"Memo\"") && error.error.message.contains("\"text\""), "\(error)")
                session.close()
            }
        }
    }

    @MainActor
    @Test func `Scenario 3: a class that is new to the server is there before the query on it`() async throws {
        try await RunningGateway.deploy { deployment in
            let files = ShopApp.files.filter { !$0.key.hasSuffix("rules.json") }
            try await deployment.run(files, isDevelopment: true) { @MainActor gateway in
                let (said, folder) = (Phone.Said(), try Phone.Folder())
                var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration(
                    initialSubscriptions: { $0.append(QuerySubscription<Port>(name: "ports") { $0.name == "A" }) })
                configuration.objectTypes = [Port.self]
                let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .always)
                #expect(realm.subscriptions.state == .complete && said.all.isEmpty, "\(said.all)")
                #expect(try await gateway.count(#"SELECT count(*) FROM "Port""#) == 0, "the class has its table")
            }
        }
    }

    @Test func `Scenario 4: a field that is added can be used, and one that is removed concerns only those that use it`() async throws {
        let (without, with) = (NoteApp.files(Self.roles), NoteApp.files(Self.roles, queryable: ["text"]))
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            for (number, files) in [without, with, without].enumerated() {
                // What breaks apps is accepted by hand.
                if number == 2 {
                    let tool = SchemaTool(app: try AppDirectory.read(files: files), postgres: deployment.conninfo)
                    _ = try await tool.apply(acceptsBreaking: true)
                }
                try await deployment.run(files) { gateway in
                    if number == 0 { try await gateway.sql(Self.rows) }
                    let user = try await gateway.openSession(["Note"])
                    let other = try await gateway.openSession(["Note"])
                    try await other.subscribe(1, [("Note", "team == 'red'")])
                    #expect(other.keys("Note") == ["1", "2"])
                    try await user.sendSubscribe(1, [("Note", "text == 't'")])
                    try await user.receive { $0.completed == 1 || !$0.queryErrors.isEmpty }
                    #expect(user.queryErrors.map(\.error.code) == (number == 1 ? [] : [.queryNotQueryable]))
                    #expect(user.keys("Note") == (number == 1 ? ["1", "3"] : []))
                    // Its session goes on, and takes a set without the field.
                    try await user.subscribe(2, [("Note", "team == 'blue'")])
                    #expect(user.keys("Note") == ["3"] && !other.hasEnded)
                    for session in [user, other] { session.close() }
                }
            }
        }
    }

    @MainActor
    @Test func `Scenario 4: devices that sync meanwhile hear nothing of a field that they do not use`() async throws {
        var files = ShopApp.files
        let sync = try #require(files["sync/config.json"])
        files["sync/config.json"] = sync.replacing(#""title", "size""#, with: #""title""#)
        let without = files
        try #require(without != ShopApp.files)
        try await RunningGateway.deploy { deployment in
            let (user, other, port) = try await deployment.run(without) { @MainActor gateway in
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1), ('n9', 'north', 9)")
                let user = try await Phone.open(gateway, orders: ["store == 'north'"])
                let other = try await Phone.open(gateway, orders: ["store == 'north'"])
                let adding = SchemaTool(app: try AppDirectory.read(files: ShopApp.files), postgres: deployment.conninfo)
                _ = try await adding.apply(acceptsBreaking: false)
                try await Self.untilTaken("store == 'north' AND size > 5", gateway)
                let subscriptions = user.realm.subscriptions
                try await subscriptions.update {
                    subscriptions.removeAll()
                    subscriptions.append(QuerySubscription<Order>(name: "large", where: "store == 'north' AND size > 5"))
                }
                #expect(user.keys == ["n9"])
                // What takes something away is for the next start: this gateway goes on as it is.
                let removing = SchemaTool(app: try AppDirectory.read(files: without), postgres: deployment.conninfo)
                _ = try await removing.apply(acceptsBreaking: true)
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n8', 'north', 8)")
                try await user.wait { Set($0.map(\._id)) == ["n8", "n9"] }
                try await other.wait { Set($0.map(\._id)) == ["n1", "n8", "n9"] }
                #expect(user.said.all.isEmpty && other.said.all.isEmpty, "\(user.said.all), \(other.said.all)")
                return (user, other, gateway.port)
            }
            try await deployment.run(without, port: port) { @MainActor gateway in
                await user.said.wait { $0.sync.contains { $0.code == .invalidFlexibleSyncSubscriptions } }
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n7', 'north', 7)")
                try await other.wait { Set($0.map(\._id)) == ["n1", "n7", "n8", "n9"] }
                #expect(!other.said.sync.contains { $0.code == .invalidFlexibleSyncSubscriptions }, "\(other.said.all)")
                #expect(other.realm.subscriptions.state == .complete)
                // With a set that does without the field it goes on.
                let subscriptions = user.realm.subscriptions
                try await subscriptions.update {
                    subscriptions.removeAll()
                    subscriptions.append(QuerySubscription<Order>(name: "north", where: "store == 'north'"))
                }
                #expect(user.keys == ["n1", "n7", "n8", "n9"] && subscriptions.state == .complete)
            }
        }
    }

    /// Waits until a running gateway takes a query.
    private static func untilTaken(_ query: String, _ gateway: RunningGateway) async throws {
        let session = try await gateway.openSession()
        var version: UInt64 = 0
        let isTaken = try await eventually(every: .milliseconds(50)) {
            version += 1
            let asked = version
            try await session.sendSubscribe(asked, [("Order", query)])
            try await session.receive { $0.completed == asked || $0.queryErrors.last?.version == asked }
            return session.completed == asked
        }
        #expect(isTaken, "\(session.queryErrors.last.map { "\($0.error)" } ?? "")")
        session.close()
    }

    @Test func `Scenario 5: words of the query language are no queryable fields, some in any case and some as they are written`() throws {
        func fails(_ name: String) -> Bool {
            var files = NoteApp.files(Self.roles, queryable: [name])
            let path = ShopApp.table("Note", "schema")
            files[path] = files[path]?.replacing("\"secret\"", with: "\"\(name)\"")
            do {
                _ = try AppDirectory.read(files: files)
                return false
            } catch {
                #expect("\(error)".contains("'\(name)' is a word of the query language"), "\(error)")
                return true
            }
        }
        let inAnyCase = """
            and asc ascending beginswith between contains desc descending distinct endswith falsepredicate inf infinity like limit nan nil \
            null or sort subquery truepredicate
            """
        for word in inAnyCase.split(separator: " ").map(String.init) {
            for name in [word, word.uppercased(), word.capitalized] { #expect(fails(name), "\(name)") }
        }
        let asWritten = Set(
            "ALL ANY B64 FALSE IN NONE NOT SOME TRUE all any false in none not oid some true uuid".split(separator: " ").map(String.init))
        for word in asWritten {
            #expect(fails(word), "\(word)")
            for name in [word.uppercased(), word.lowercased(), word.capitalized] {
                #expect(fails(name) == asWritten.contains(name), "\(name)")
            }
        }
        #expect(!fails("limits"))
    }

    @Test func `Scenario 5: in development a query makes no word of the query language queryable, and others of its class go on`()
        async throws
    {
        let memo = Schema([
            ObjectType(
                name: "Memo",
                properties: [
                    Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "sort", type: .string),
                    Property(id: 3, name: "LIMIT", type: .string), Property(id: 4, name: "limits", type: .string),
                ])
        ])
        try await RunningGateway.with(files: ShopApp.withoutRules, isDevelopment: true) { gateway in
            let session = try await gateway.session(token: try await gateway.anonymousToken())
            try await session.hello(memo)
            try await gateway.sql(#"INSERT INTO "Memo" (_id, sort, "LIMIT", limits) VALUES ('a', 'x', 'x', 'x'), ('b', 'y', 'y', 'y')"#)
            for (number, query) in ["sort == 'x'", "limits == 'x' AND LIMIT == 'x'"].enumerated() {
                try await session.sendSubscribe(UInt64(number + 1), [("Memo", query)])
                try await session.receive { $0.queryErrors.count == number + 1 || $0.completed > 0 }
                let error = try #require(session.queryErrors.last?.error, "\(query)")
                let word = ["sort", "LIMIT"][number]
                #expect(error.code == .queryNotQueryable && error.message.contains("'\(word)' of Memo"), "\(error)")
                #expect(error.message.contains("is a word of the query language"), "\(error)")
            }
            try await session.subscribe(3, [("Memo", "limits == 'x'")])
            #expect(session.keys("Memo") == ["a"] && session.error == nil)
            session.close()
        }
    }

    @Test func `Scenario 5: an app directory that names such a field does not start, in development either`() async throws {
        let files = NoteApp.files(Self.roles, queryable: ["sort"])
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            for isDevelopment in [false, true] {
                let error = await #expect(throws: AppDirectoryError.self) {
                    try await deployment.run(files, isDevelopment: isDevelopment) { _ in _ = Issue.record("it has started") }
                }
                #expect(error.map { "\($0)".contains("'sort' is a word of the query language") } == true, "\(String(describing: error))")
            }
        }
    }
}
