import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceReplica
import SluiceSDK
import SluiceValues
import Testing

/// Writes that are larger than the gateway takes.
@Suite(.timeLimit(.minutes(5))) struct `Writes that are too large` {
    private static func text(_ bytes: Int) -> String { String(repeating: "x", count: bytes) }

    @MainActor
    @Test func `are refused at commit with size and limit, and later ones are uploaded`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            // Each object may be that large, all of them together may not.
            let error = #expect(throws: Realm.Error.self) {
                try phone.realm.write {
                    for number in 0..<3 {
                        phone.realm.create(
                            Order.self,
                            value: ["_id": "large\(number)", "store": "north", "title": Self.text(6 << 20), "size": 1] as [String: Any])
                    }
                }
            }
            #expect(error?.code == .fail && error?.message.contains("\(Limits.messageBytes) bytes") == true, "\(String(describing: error))")
            #expect(
                error?.message.contains("write-too-large (\(ErrorCode.writeTooLarge.rawValue))") == true, "\(String(describing: error))")
            #expect(phone.keys.isEmpty && !phone.realm.isInWriteTransaction)
            for number in 0..<3 {
                try phone.realm.write {
                    phone.realm.create(
                        Order.self,
                        value: ["_id": "one\(number)", "store": "north", "title": Self.text(6 << 20), "size": 1] as [String: Any])
                }
            }
            try await phone.session.wait(for: .upload)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE length(title) = \(6 << 20)") == 3)
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")
        }
    }

    @MainActor
    @Test func `of an older version are taken back and told, and later ones are uploaded`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            phone.session.suspend()
            // Without the bound of an upload, as older versions opened the file.
            let schema = _replica(of: phone.realm).schema
            let older = try Replica(path: try #require(phone.configuration.fileURL).path, schema: schema)
            let order = try #require(schema.index(of: "Order"))
            let transaction = try older.beginWrite()
            try transaction.create(
                type: order, key: .string("large"),
                values: ["store": .string("north"), "title": .string(Self.text(17 << 20)), "size": .int(1)])
            try transaction.commit()
            try phone.add("later")
            phone.session.resume()
            try await phone.session.wait(for: .upload)
            #expect(try await gateway.texts("SELECT _id FROM orders") == ["later"])
            await phone.said.wait { !$0.sync.isEmpty }
            let infos = phone.said.sync.flatMap { $0.compensatingWriteInfo ?? [] }
            #expect(infos.map(\.objectType) == ["Order"] && infos.map(\.cause) == [.tooLarge], "\(infos.map(\.reason))")
            #expect(infos.first?.reason.contains("\(Limits.messageBytes) bytes") == true, "\(infos.map(\.reason))")
            try await phone.wait { Set($0.map(\._id)) == ["later"] }
            let user = try #require(phone.session.parentUser()).id
            let answer = try await gateway.request("GET", "/admin/v1/why?user=\(user)&type=Order&id=large", admin: true).json
            let reason = answer["because"]?.array?.compactMap(\.string).last
            #expect(reason?.contains(", decided by the device: The write transaction ") == true, "\(answer)")
        }
    }

    @MainActor
    @Test func `of asymmetric objects are refused by the device, and one that the gateway takes lands`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let (folder, said) = (try Phone.Folder(), Phone.Said())
            var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration()
            configuration.objectTypes = [Reading.self]
            let realm = try await Realm(configuration: configuration)
            func send(_ key: String, _ bytes: Int) throws {
                try realm.write {
                    realm.create(Reading.self, value: ["_id": key, "store": Self.text(bytes), "value": 1.5] as [String: Any])
                }
            }
            try send("million", 1_000_001)
            let frame = #"{"_id":"largest","store":"","value":1.5}"#.utf8.count
            try send("largest", Limits.ingestObjectBytes - frame)
            let error = #expect(throws: Realm.Error.self) { try send("larger", Limits.ingestObjectBytes) }
            #expect(error?.message.contains("\(Limits.ingestObjectBytes) bytes") == true, "\(String(describing: error))")
            #expect(error?.message.contains("ingest-too-large") == true)
            try send("after", 10)
            try await #require(realm.syncSession).wait(for: .upload)
            #expect(try await gateway.texts("SELECT _id FROM readings ORDER BY _id") == ["after", "largest", "million"])
            #expect(said.all.isEmpty, "\(said.all)")
        }
    }
}
