import Logging
import SluiceCore
import SluicePorts
import SluiceValues
import SluiceWire

/// The errors that a client reports, for operators. The client's own log may be out of reach.
extension Session {
    /// Logs an error of the client, and stores the writes that the client undid because of it.
    func note(_ report: PBReportError) async throws {
        guard let file, machine.takeReport() else { return }
        let writes = undone(report)
        var metadata: Logger.Metadata = ["code": "\(report.code)", "reason": "\(report.message.prefix(2_000))"]
        if let first = writes.first {
            metadata["type"] = "\(first.object.type)"
            metadata["key"] = "\(ExtendedJSON.json(first.object.key).text.prefix(200))"
        }
        logger.warning("A client reports an error.", metadata: metadata)
        if !writes.isEmpty { try await services.clients.keepReported(id: file.id, writes) }
    }

    /// Returns the writes of a report as rejections. Those that cannot be writes of an object of the schema are left out: the report is
    /// input from outside, and operators read the result.
    private func undone(_ report: PBReportError) -> [WriteRejection] {
        let schema = services.authority.current().schema
        let code = UInt16(exactly: report.code).flatMap { ErrorCode(rawValue: $0) } ?? .compensatingWrite
        // Counted in scalars: a character has no bound of bytes.
        let reason = String(String.UnicodeScalarView(report.message.unicodeScalars.prefix(2_000)))
        return report.writes.prefix(Limits.reportedWrites).compactMap { write in
            guard let type = schema[write.type], let index = type.primaryKey, let value = try? Value(write.primaryKey),
                let key = try? type.properties[index].checked(value, type: type), !key.isNull,
                key.recordBytes <= RejectedWriteReport.longestValues
            else { return nil }
            return WriteRejection(
                changeset: write.changeset, object: ObjectKey(type: type.name, key: key), code: code,
                cause: code == .writeTooLarge ? .tooLarge : nil, reason: reason, rule: "the device", values: [:])
        }
    }
}
