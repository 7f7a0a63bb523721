import FoundationEssentials
import SluiceCore
import SluicePorts
import SluiceRealm
import SluiceWire
import SwiftProtobuf

// The first message of the hidden session.
extension BridgeStream {
    /// Returns `true` if the session continues the last complete view from the position of the state.
    func canResume(_ record: RealmClientRecord) -> Bool {
        guard let view = record.view, view.queryVersion == replica.query.version else { return false }
        // A bootstrap erases what the client holds, so an older state must be brought up to date before it.
        return record.building == nil || isOlder
    }

    /// - Throws: `badSyntax` for a state with a view record that cannot be read.
    func hello(_ record: RealmClientRecord, user: String) throws(SluiceError) -> PBHello {
        var hello = PBHello()
        hello.protocol = WireProtocol.version
        hello.accessToken = user
        hello.sdk = "realm"
        hello.schema = schema.types.map { type in
            var schema = PBObjectSchema(type)
            // A class without properties stands for all of them.
            (schema.properties, schema.primaryKey) = ([], "")
            return schema
        }
        guard replica.client > 0 else { return hello }
        hello.client = replica.client
        hello.secret = Data(replica.secret)
        hello.oldestBase = steps.base(of: record.upload.serverVersion).rawValue
        guard canResume(record) else { return hello }
        hello.appliedLsn = replica.lsn.rawValue
        hello.appliedVersion = 1
        hello.held = try WireProtocol.decode(from: replica.held)
        hello.witness = Data(replica.witness)
        return hello
    }
}
