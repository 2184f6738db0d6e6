"""Files on the file systems that only Spark reaches, such as hdfs: and s3a:."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.files.locate import ENDINGS, PATTERN, File, natural_key, plain_path


class HadoopPlace:
    """A file, a folder or a pattern by its URI; listed by the libraries that Spark reads with."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._uri = uri
        self._endings: tuple[str, ...] = ("",)
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path(uri)
        try:
            settings = spark.sparkContext._jsc.hadoopConfiguration()
            self._system = self._path.getFileSystem(settings)
            self.is_folder = (
                not PATTERN.search(uri) and self._system.getFileStatus(self._path).isDirectory()
            )
        except Py4JJavaError as error:
            raise SourceError(f"can't open {uri}: {error.java_exception.getMessage()}") from None

    def __str__(self) -> str:
        return self._uri

    def only(self, form: str) -> HadoopPlace:
        """Without a folder's files of other forms."""
        self._endings = ENDINGS[form]
        return self

    def files(self) -> list[File]:
        found = [
            File(plain_path(status.getPath().toUri().toString()), status.getLen())
            for status in self._statuses()
            if status.isFile() and not status.getPath().getName().startswith((".", "_"))
        ]
        if self.is_folder:
            found = [f for f in found if f.path.lower().endswith(self._endings)]
        return sorted(found, key=lambda f: natural_key(f.path))

    def _statuses(self) -> Iterator[Any]:
        if self.is_folder:
            yield from self._system.listStatus(self._path)
        else:
            yield from self._system.globStatus(self._path) or []
