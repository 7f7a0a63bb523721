import FoundationEssentials
package import SluiceCore
import SluicePostgres

/// Makes the safe changes of `sluice check --fix`.
package struct CheckRepairs: Sendable {
    /// PostgreSQL, as a libpq connection string; nil if none is named.
    private let postgres: String?

    package init(postgres: String?) { self.postgres = postgres }

    /// Lists the changes on standard error, and asks on a terminal.
    ///
    /// - Throws: `configMissing` if standard input is no terminal.
    package static func confirm(_ findings: [CheckFinding]) throws(SluiceError) -> Bool {
        for finding in findings { StandardError.write("  \(TerminalText.shown(finding.repair?.text ?? ""))\n") }
        return try StandardInput.agrees(false, "Make these changes?")
    }

    /// Makes the changes, one after another.
    ///
    /// - Returns: A finding for each that failed.
    package func make(_ findings: [CheckFinding]) async -> [CheckFinding] {
        var failures: [CheckFinding] = []
        for finding in findings {
            guard let repair = finding.repair else { continue }
            do { try await make(repair) } catch {
                let reason = SluiceError(of: error) ?? SluiceError(.configInvalid, "The system refuses it.", cause: ErrorCause(error))
                failures.append(CheckFinding(.error, finding.area, finding.subject, "“\(repair.text)” failed. \(reason.operatorText)"))
            }
        }
        return failures
    }

    private func make(_ repair: CheckFinding.Repair) async throws {
        switch repair {
        case .restrict(let path): try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        case .folder(let path):
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        case .identity(let mapping): try await connected { try await TableCatalog.setFullIdentity($0, of: mapping) }
        // As a gateway does at its start.
        case .publish(let mapping, let publication):
            try await connected { connection in
                try await CompanionSchema.create(connection)
                _ = try await Publication.ensure(connection, name: publication, tables: [mapping])
            }
        }
    }

    /// Runs the body with a connection that is closed behind it.
    private func connected(_ body: (PostgresConnection) async throws -> Void) async throws {
        guard let postgres else { return }
        let connection = try await PostgresConnection.connect(postgres, within: GatewayCheck.patience)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(connection)) } catch { outcome = .failure(error) }
        await connection.close()
        try outcome.get()
    }
}

extension CheckFinding.Repair {
    /// The change, for people.
    package var text: String {
        switch self {
        case .identity(let mapping): "ALTER TABLE \(mapping.sqlName) REPLICA IDENTITY FULL"
        case .publish(let mapping, _): "publish \(mapping.displayName) with REPLICA IDENTITY FULL"
        case .restrict(let path): "chmod 600 \(ShellText.word(path))"
        case .folder(let path): "mkdir -p -m 700 \(ShellText.word(path))"
        }
    }
}
