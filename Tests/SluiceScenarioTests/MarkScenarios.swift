import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceSDK
import SluiceTools
import TestSupport
import Testing

/// A class that is asymmetric in the app or on the server alone (ING-3, RST-11).
@Suite(.timeLimit(.minutes(5))) struct `A class that only one side has as asymmetric` {
    /// What the app calls readings when its developer has mended it.
    private final class OrdinaryReading: Object {
        @Persisted(primaryKey: true) var _id: String
        @Persisted var store: String
        @Persisted var value: Double
        override class func _realmObjectName() -> String? { "Reading" }
        // The program has a class of this name already.
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    /// The same of tags.
    private final class AsymmetricTag: AsymmetricObject {
        @Persisted(primaryKey: true) var _id: String
        @Persisted var title: String?
        override class func _realmObjectName() -> String? { "Tag" }
    }

    /// One file on a device, which outlives versions of the app and of the server.
    @MainActor
    private final class Device {
        let said = Phone.Said()
        private let folder: Phone.Folder
        private let user: User
        private var opened: Realm?

        init(_ gateway: RunningGateway, _ types: [ObjectBase.Type]) async throws {
            folder = try Phone.Folder()
            user = try await Phone.user(gateway, said, folder)
            try await start(types)
        }

        /// Starts a version of the app.
        func start(_ types: [ObjectBase.Type]) async throws {
            weak let last = opened?.syncSession
            opened = nil
            // The last handle goes when what is on its way to the main thread has come.
            try #require(try await eventually { last == nil })
            var configuration = user.flexibleSyncConfiguration()
            configuration.objectTypes = types
            opened = try await Realm(configuration: configuration)
        }

        var realm: Realm {
            get throws { try #require(opened) }
        }

        func subscribe<T: Object>(to type: T.Type, _ query: String = "TRUEPREDICATE") throws {
            let subscriptions = try realm.subscriptions
            subscriptions.update({ subscriptions.append(QuerySubscription<T>(where: query)) }, onComplete: { _ in })
        }

        func addReading(_ key: String) throws {
            let realm = try realm
            try realm.write { realm.create(Reading.self, value: ["_id": key, "store": "north", "value": 1.5] as [String: Any]) }
        }

        func addTag(_ key: String) throws {
            let realm = try realm
            try realm.write { _ = realm.create(Tag.self, value: ["_id": key, "title": "t"]) }
        }

        func upload() async throws { try await #require(try realm.syncSession).wait(for: .upload) }

        /// Waits for the error that says what is wrong with a class, and that the session waits for it to be mended.
        func expectMistake(_ words: [String], sourceLocation: SourceLocation = #_sourceLocation) async throws {
            await said.wait { !$0.all.isEmpty }
            let error = try #require(said.sync.first, sourceLocation: sourceLocation)
            let name = "\(ErrorCode.badChangeset.name) (\(ErrorCode.badChangeset.rawValue)): "
            #expect(
                error.code == .clientSessionError && error.message.hasPrefix(name) && said.all.count == 1, "\(said.all)",
                sourceLocation: sourceLocation)
            for word in words { #expect(error.message.contains(word), "\(error)", sourceLocation: sourceLocation) }
            #expect(try realm.syncSession?.state == .inactive, sourceLocation: sourceLocation)
        }
    }

    /// The shop whose server has these classes as asymmetric.
    private static func shop(_ names: String) -> [String: String] {
        let sync = ShopApp.files["sync/config.json"]?.replacing(#"["Reading"]"#, with: "[\(names)]") ?? ""
        return ShopApp.files.merging(["sync/config.json": sync]) { $1 }
    }

    /// Accepts by hand what breaks apps.
    private static func deploy(_ files: [String: String], _ deployment: RunningGateway.Deployment) async throws {
        _ = try await SchemaTool(app: try AppDirectory.read(files: files), postgres: deployment.conninfo).apply(acceptsBreaking: true)
    }

    @MainActor
    @Test func `Scenario 38: what was sent waits, and arrives when the server has the class as asymmetric, too`() async throws {
        try await RunningGateway.deploy { deployment in
            let (device, port) = try await deployment.run(Self.shop("")) { @MainActor gateway in
                let device = try await Device(gateway, [Reading.self, Order.self])
                try device.addReading("before")
                try await device.expectMistake(["Class Reading is asymmetric in the app"])
                try device.addReading("meanwhile")
                return (device, gateway.port)
            }
            let mended = Self.shop(#""Reading""#)
            try await Self.deploy(mended, deployment)
            try await deployment.run(mended, port: port) { @MainActor gateway in
                #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
                try device.realm.syncSession?.resume()
                try device.addReading("since")
                try await device.upload()
                #expect(try await gateway.texts("SELECT _id FROM readings ORDER BY _id") == ["before", "meanwhile", "since"])
                #expect(device.said.all.count == 1, "\(device.said.all)")
            }
        }
    }

    @MainActor
    @Test func `Scenario 38: when the app is mended what was sent is refused by name and kept, and what is written since arrives`()
        async throws
    {
        try await RunningGateway.deploy { deployment in
            try await deployment.run(Self.shop("")) { @MainActor gateway in
                let device = try await Device(gateway, [Reading.self, Order.self])
                try device.addReading("before")
                try await device.expectMistake(["Class Reading is asymmetric in the app"])
                try await device.start([OrdinaryReading.self, Order.self])
                await device.said.wait { $0.sync.count > 1 }
                let infos = device.said.sync.last?.compensatingWriteInfo ?? []
                #expect(infos.map(\.objectType) == ["Reading"] && infos.map(\.primaryKey) == [.string("before")])
                #expect(infos.map(\.code) == [Int(ErrorCode.ingestUnknownType.rawValue)], "\(device.said.all)")
                let kept = "SELECT concat_ws(' ', object::jsonb->>'_id', object::jsonb->>'store') FROM sluice.ingest_rejected"
                #expect(try await gateway.texts(kept) == ["before north"])
                try device.subscribe(to: OrdinaryReading.self, "store == 'north'")
                let realm = try device.realm
                try realm.write { _ = realm.create(OrdinaryReading.self, value: ["_id": "since", "store": "north", "value": 2.5]) }
                try await device.upload()
                #expect(try await gateway.texts("SELECT _id FROM readings") == ["since"])
                #expect(realm.objects(OrdinaryReading.self).map(\._id) == ["since"] && device.said.all.count == 2, "\(device.said.all)")
            }
        }
    }

    @MainActor
    @Test func `Scenario 38: what was written waits, and arrives when the server has the class as an ordinary one, too`() async throws {
        try await RunningGateway.deploy { deployment in
            let (device, port) = try await deployment.run(Self.shop(#""Reading", "Tag""#)) { @MainActor gateway in
                let device = try await Device(gateway, [Tag.self])
                try device.subscribe(to: Tag.self)
                try device.addTag("before")
                try await device.expectMistake(["Class Tag is", "in the app and asymmetric on the server"])
                try device.addTag("meanwhile")
                #expect(try await gateway.count("SELECT count(*) FROM tags") == 0)
                return (device, gateway.port)
            }
            let mended = Self.shop(#""Reading""#)
            try await Self.deploy(mended, deployment)
            try await deployment.run(mended, port: port) { @MainActor gateway in
                try await gateway.sql("INSERT INTO tags (_id, title) VALUES ('theirs', 't')")
                let realm = try device.realm
                realm.syncSession?.resume()
                try device.addTag("since")
                try await device.upload()
                try await realm.syncSession?.wait(for: .download)
                let wanted = ["before", "meanwhile", "since", "theirs"]
                #expect(try await gateway.texts("SELECT _id FROM tags ORDER BY _id") == wanted)
                #expect(realm.objects(Tag.self).map(\._id).sorted() == wanted && realm.subscriptions.state == .complete)
                #expect(device.said.all.count == 1, "\(device.said.all)")
            }
        }
    }

    @MainActor
    @Test func `Scenario 38: when the app has it as asymmetric, too, what was written is refused by name and kept`() async throws {
        try await RunningGateway.deploy { deployment in
            try await deployment.run(Self.shop(#""Reading", "Tag""#)) { @MainActor gateway in
                let device = try await Device(gateway, [Tag.self, Order.self])
                try device.subscribe(to: Tag.self)
                try device.addTag("before")
                try await device.expectMistake(["Class Tag is", "in the app and asymmetric on the server"])
                try await device.start([AsymmetricTag.self, Order.self])
                // The subscription is of the app before; what was written under it goes out when there is another.
                await device.said.wait { $0.sync.contains { $0.code == .invalidFlexibleSyncSubscriptions } }
                let realm = try device.realm
                let subscriptions = realm.subscriptions
                try await subscriptions.update {
                    subscriptions.removeAll()
                    subscriptions.append(QuerySubscription<Order> { $0.store == "north" })
                }
                try realm.write { realm.create(AsymmetricTag.self, value: ["_id": "since", "title": "t"]) }
                try await device.upload()
                await device.said.wait { $0.sync.contains { $0.code == .writeRejected } }
                let infos = device.said.sync.flatMap { $0.compensatingWriteInfo ?? [] }
                #expect(infos.map(\.objectType) == ["Tag"] && infos.map(\.primaryKey) == [.string("before")])
                #expect(infos.map(\.cause) == [.notWritten] && infos.first?.values["title"] == .string("t"), "\(device.said.all)")
                #expect(try await gateway.texts("SELECT _id FROM tags") == ["since"])
                let kept = "SELECT concat_ws(' ', type, key_value #>> '{}', values->>'title') FROM sluice.rejected_write"
                #expect(try await gateway.texts(kept) == ["Tag before t"])
            }
        }
    }
}
