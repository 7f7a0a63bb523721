/// Conditions and options in SQL that several readers of the catalog share, so that they agree.
enum CatalogSQL {
    /// The role of Amazon RDS and Aurora whose members may replicate. No role has the attribute REPLICATION there.
    static let managedReplication = "rds_replication"

    /// The condition that a role may read a slot: by its attribute, or as a member of a managed service's role.
    ///
    /// - Parameter role: The alias of the role's row of `pg_roles`.
    static func mayReplicate(_ role: String) -> String {
        // Constant because: the name is a constant of this type.
        """
        (\(role).rolsuper OR \(role).rolreplication OR EXISTS (
            SELECT FROM pg_roles managed WHERE managed.rolname = '\(managedReplication)' AND pg_has_role(\(role).oid, managed.oid, 'MEMBER')))
        """
    }

    /// The condition that a publication has a table.
    ///
    /// - Parameters:
    ///   - relation: SQL for the table's OID.
    ///   - publication: SQL for the publication's name.
    static func isPublished(_ relation: String, in publication: String) -> String {
        """
        EXISTS (SELECT FROM pg_publication p WHERE p.pubname = \(publication)
            AND (p.puballtables OR EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = \(relation))))
        """
    }

    /// The condition that a publication has a row filter or a column list for a table. PostgreSQL before 15 has neither, nor the columns
    /// for them. The parameters are those of `isPublished`.
    static func isNarrowed(_ relation: String, in publication: String) -> String {
        """
        EXISTS (SELECT FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid WHERE p.pubname = \(publication)
            AND r.prrelid = \(relation) AND (to_jsonb(r) ->> 'prqual' IS NOT NULL OR to_jsonb(r) ->> 'prattrs' IS NOT NULL))
        """
    }

    /// The condition that a row of `pg_publication` has `publicationOptions`.
    static let hasPublicationOptions = "pubinsert AND pubupdate AND pubdelete AND pubtruncate AND pubviaroot"

    /// The options of the app's publication: every kind of change, those of partitions under their table.
    static let publicationOptions = "publish = 'insert, update, delete, truncate', publish_via_partition_root = true"

    /// The condition that the row `c` of `pg_class` is a table, or one of its partitions, whose changes lack their old rows.
    ///
    /// - Parameter relation: SQL for the table's OID.
    static func lacksIdentity(_ relation: String) -> String {
        """
        c.relreplident <> 'f' AND c.relkind IN ('r', 'p')
            AND (c.oid = \(relation) OR c.oid IN (SELECT relid FROM pg_partition_tree(\(relation)::regclass)))
        """
    }
}
